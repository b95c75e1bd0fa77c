// Applies the RMS norm of queries and keys, then their rotary position embedding, in place:
//
//   n = x[r, p] / sqrt(mean(x[r, p]^2) + eps) * weight[p]     over all heads at once, in fp32
//   (n[2i], n[2i+1]) -> (n[2i] cos - n[2i+1] sin, n[2i] sin + n[2i+1] cos)     in each head
#pragma once

#include <ATen/core/Tensor.h>

namespace wan {

// x is [rows, parts * dim] in fp32 or bf16, contiguous in the last dimension. Each row of x has
// `parts` vectors of `dim` values side by side, for example queries and keys from a packed
// projection. weight is [parts, dim] in fp32.
//
// rotary is [tokens, head_dim] in fp32, made by RotaryTable (rotary_table.h). Row r of x uses row r
// mod tokens of rotary. If rotary is undefined, only the norm is applied.
void RmsNormRope(at::Tensor& x, const at::Tensor& weight, double eps, const at::Tensor& rotary);

// An implementation in plain ATen. This implementation runs on a CPU, and tests compare the kernel
// with it.
void RmsNormRopeReference(at::Tensor& x, const at::Tensor& weight, double eps,
                          const at::Tensor& rotary);

}  // namespace wan
