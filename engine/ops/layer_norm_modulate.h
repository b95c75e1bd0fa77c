// Layer norm followed by a scale and a shift that few rows differ in:
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
// `scale` is the whole factor: where upstream has 1 + scale, the 1 is part of it.
void LayerNormModulate(const at::Tensor& x, const at::Tensor& scale, const at::Tensor& shift,
                       const at::Tensor& index, double eps, at::Tensor& out);

// The same in plain ATen: what a CPU uses, and what the kernel is tested against.
void LayerNormModulateReference(const at::Tensor& x, const at::Tensor& scale,
                                const at::Tensor& shift, const at::Tensor& index, double eps,
                                at::Tensor& out);

}  // namespace wan
