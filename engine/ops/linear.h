// Linear layers that write to memory that the caller owns: out = x weight^T + bias.
#pragma once

#include <ATen/core/Tensor.h>

namespace wan {

// x is [rows, in], weight [out, in], bias [out] and out [rows, out]. All have one dtype and device;
// sums are fp32. `out` must not overlap x.
void Linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, at::Tensor& out);

// Computes gelu(x weight^T + bias) with the tanh approximation. On CUDA in bf16 the GELU is fused
// with the product and applied before the sum is rounded.
void LinearGelu(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                at::Tensor& out);

}  // namespace wan
