// Norm of every pixel's channels: x / max(|x|, 1e-12) * sqrt(C) * gamma, where |x| is the Euclidean
// length over the C channels. Lengths are computed in fp32.
//
// x is [N, C, ...] in fp32 or bf16, gamma has C elements in the same dtype.
#pragma once

#include <ATen/core/Tensor.h>

namespace wan {

at::Tensor ChannelRmsNorm(const at::Tensor& x, const at::Tensor& gamma);

// SiLU of the norm, y * sigmoid(y), written to `out`, which has the shape of x, may be strided, and
// does not overlap x.
void ChannelRmsNormSilu(const at::Tensor& x, const at::Tensor& gamma, at::Tensor out);

// The same in plain ATen for any device and layout: what ChannelRmsNormSilu does on a CPU, and what
// a kernel is tested against.
void ChannelRmsNormSiluReference(const at::Tensor& x, const at::Tensor& gamma, at::Tensor out);

}  // namespace wan
