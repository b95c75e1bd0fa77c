// Ends one part of a transformer block and starts the next, in one pass over the residual stream:
//
//   x[r] += gate[i] * y[r]
//   out[r] = layer_norm(x[r]) * scale[i] + shift[i]     with i = index[r]
#pragma once

#include <ATen/core/Tensor.h>

#include "engine/ops/rounding.h"

namespace wan {

// y is [rows, dim] in fp32 or bf16. x is [rows, dim] in fp32, and is updated in place. gate is [n,
// dim] in fp32; an undefined gate stands for 1. The other arguments are as in
// layer_norm_modulate.h. `out` may be y itself. Sums and the norm are computed in fp32.
void GateResidualNorm(const at::Tensor& y, const at::Tensor& gate, at::Tensor& x,
                      const at::Tensor& scale, const at::Tensor& shift, const at::Tensor& index,
                      double eps, at::Tensor& out);

// Computes as above, and rounds the norm to 8 bits in `out` (rounding.h), which may be RoundedIn(y,
// dim).
void GateResidualNorm(const at::Tensor& y, const at::Tensor& gate, at::Tensor& x,
                      const at::Tensor& scale, const at::Tensor& shift, const at::Tensor& index,
                      double eps, const RoundedRows& out);

// An implementation in plain ATen. This implementation runs on a CPU, and tests compare the kernel
// with it.
void GateResidualNormReference(const at::Tensor& y, const at::Tensor& gate, at::Tensor& x,
                               const at::Tensor& scale, const at::Tensor& shift,
                               const at::Tensor& index, double eps, at::Tensor& out);

}  // namespace wan
