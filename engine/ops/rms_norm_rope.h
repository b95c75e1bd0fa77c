// Applies the RMS norm of queries and keys, then their rotary position embedding, in place:
//
//   n = x[r, p] / sqrt(mean(x[r, p]^2) + eps) * weight[p]     over all heads at once, in fp32
//   (n[2i], n[2i+1]) -> (n[2i] cos - n[2i+1] sin, n[2i] sin + n[2i+1] cos)     in each head
#pragma once

#include <ATen/core/Tensor.h>

namespace wan {

// x [rows, parts * dim] fp32 or bf16, contiguous in its last dimension: `parts` vectors of `dim`
// side by side, for example queries and keys inside the product of a packed projection. weight
// [parts, dim] fp32.
//
// rotary [tokens, head_dim] fp32 as RotaryTable (rotary_table.h) makes it; row r of x takes its row
// r mod tokens. If it is undefined, only the norm is applied.
void RmsNormRope(at::Tensor& x, const at::Tensor& weight, double eps, const at::Tensor& rotary);

// Computes the same in plain ATen. A CPU uses it, and tests compare the kernel with it.
void RmsNormRopeReference(at::Tensor& x, const at::Tensor& weight, double eps,
                          const at::Tensor& rotary);

}  // namespace wan
