// Normalises the channels of every pixel: x / max(|x|, 1e-12) * sqrt(C) * gamma, where |x| is the
// Euclidean length over the C channels. Lengths are computed in fp32, whatever the dtype of x.
//
// x is [N, C, ...] in fp32, bf16 or fp16; gamma has C elements of the same dtype.
#pragma once

#include <ATen/core/Tensor.h>

namespace wan {

at::Tensor ChannelRmsNorm(const at::Tensor& x, const at::Tensor& gamma);

// Writes SiLU(y) = y * sigmoid(y) of the norm y to `out`, which has the shape of x and must not
// overlap it. `out` may be strided, and may be fp16 if x is fp32.
void ChannelRmsNormSilu(const at::Tensor& x, const at::Tensor& gamma, at::Tensor out);

// An implementation in plain ATen, for any device and layout. ChannelRmsNormSilu uses this
// implementation on a CPU, and tests compare the kernel with it.
void ChannelRmsNormSiluReference(const at::Tensor& x, const at::Tensor& gamma, at::Tensor out);

}  // namespace wan
