// Affine maps into memory that the caller owns: out = x weight^T + bias.
#pragma once

#include <ATen/core/Tensor.h>

namespace wan {

// x [rows, in], weight [out, in], bias [out], out [rows, out], all of one dtype and device; sums
// are fp32. `out` does not overlap x.
void Linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, at::Tensor& out);

// Computes gelu(x weight^T + bias) with the tanh approximation. On CUDA in bf16 the GELU is fused
// and applied before the sum is rounded.
void LinearGelu(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                at::Tensor& out);

}  // namespace wan
