// A layer norm, followed by a scale and a shift that many rows share:
//
//   out[r] = (x[r] - mean) / sqrt(variance + eps) * scale[i] + shift[i]     with i = index[r]
//
// over the last dimension, in fp32.
#pragma once

#include <ATen/core/Tensor.h>

namespace wan {

// x [rows, dim] fp32; scale, shift [n, dim] fp32, each of them with one row for all or a row for
// every value of `index`, int32 [rows], which may be undefined if both have one row; out [rows,
// dim] fp32 or bf16, apart from x. All are contiguous in their last dimension and on one device.
//
// `scale` is the whole factor: where upstream computes 1 + scale, it includes the 1.
void LayerNormModulate(const at::Tensor& x, const at::Tensor& scale, const at::Tensor& shift,
                       const at::Tensor& index, double eps, at::Tensor& out);

// Computes the same in plain ATen. A CPU uses it, and tests compare the kernel with it.
void LayerNormModulateReference(const at::Tensor& x, const at::Tensor& scale,
                                const at::Tensor& shift, const at::Tensor& index, double eps,
                                at::Tensor& out);

}  // namespace wan
