// A layer norm, followed by a scale and a shift, which several rows may share:
//
//   out[r] = (x[r] - mean) / sqrt(variance + eps) * scale[i] + shift[i]     with i = index[r]
//
// Mean and variance are over the last dimension; all arithmetic is fp32.
#pragma once

#include <ATen/core/Tensor.h>

#include "engine/ops/rounding.h"

namespace wan {

// x is [rows, dim] in fp32. scale and shift are [n, dim] in fp32, each with one row for all of x or
// one row per value of `index`. index is int32 [rows], or undefined if both tables have one row.
// out is [rows, dim] in fp32 or bf16 and must not overlap x. All tensors are on one device and
// contiguous in the last dimension.
//
// `scale` is the full factor: it includes the 1 of upstream's 1 + scale.
void LayerNormModulate(const at::Tensor& x, const at::Tensor& scale, const at::Tensor& shift,
                       const at::Tensor& index, double eps, at::Tensor& out);

// Computes as above, and rounds the norm to 8 bits in `out` (rounding.h).
void LayerNormModulate(const at::Tensor& x, const at::Tensor& scale, const at::Tensor& shift,
                       const at::Tensor& index, double eps, const RoundedRows& out);

// An implementation in plain ATen. This implementation runs on a CPU, and tests compare the kernel
// with it.
void LayerNormModulateReference(const at::Tensor& x, const at::Tensor& scale,
                                const at::Tensor& shift, const at::Tensor& index, double eps,
                                at::Tensor& out);

}  // namespace wan
