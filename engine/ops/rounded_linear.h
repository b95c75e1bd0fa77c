// Affine maps of rounded inputs (rounding.h) into memory that the caller owns: out = x weight^T +
// bias.
#pragma once

#include <ATen/core/Tensor.h>

#include "engine/ops/rounding.h"

namespace wan {

enum class Activation { kNone, kGeluTanh };

// x is [rows, in]; weight is [out, in] with a scale per output channel; bias is [out] in any dtype;
// out is [rows, out] in fp32 or bf16. Sums are fp32. `out` does not overlap x.
//
// On compute capability 9.0 our kernel (rounded_linear_sm90.cu) computes results in bf16. On 8.9
// and above LibTorch's kernel computes all other results. Other devices multiply the values in
// fp32.
void RoundedLinear(const RoundedRows& x, const RoundedRows& weight, const at::Tensor& bias,
                   Activation activation, at::Tensor& out);

// An implementation in plain ATen. This implementation runs on a CPU, and tests compare the kernel
// with it.
void RoundedLinearReference(const RoundedRows& x, const RoundedRows& weight, const at::Tensor& bias,
                            Activation activation, at::Tensor& out);

// The lowest AttentionProblem::compute_capability with tensor cores for e4m3.
inline constexpr int kFirstE4m3Capability = 89;

}  // namespace wan
