// Applies the RMS norm of queries and keys, then their rotary position embedding, in place:
//
//   n = x[r, p] / sqrt(mean(x[r, p]^2) + eps) * weight[p]     over all heads at once, in fp32
//   (n[2i], n[2i+1]) -> (n[2i] cos - n[2i+1] sin, n[2i] sin + n[2i+1] cos)     in each head
#pragma once

#include <ATen/core/Tensor.h>

namespace wan {

// x [rows, parts * dim] fp32 or bf16, contiguous in the last dimension: `parts` vectors of `dim`
// side by side, for example queries and keys from a packed projection; weight [parts, dim] fp32.
//
// rotary [tokens, head_dim] fp32 is made by RotaryTable (rotary_table.h); row r of x uses its row r
// mod tokens. If it is undefined, only the norm is applied.
void RmsNormRope(at::Tensor& x, const at::Tensor& weight, double eps, const at::Tensor& rotary);

// A plain ATen version. It runs on a CPU, and tests compare the kernel with it.
void RmsNormRopeReference(at::Tensor& x, const at::Tensor& weight, double eps,
                          const at::Tensor& rotary);

}  // namespace wan
