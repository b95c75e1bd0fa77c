// The activations of a forward, and the products of its blocks in the model's dtype or in 8 bits.
#pragma once

#include <ATen/core/Tensor.h>

#include "engine/models/wan/transformer_weights.h"
#include "engine/ops/rounded_linear.h"
#include "engine/ops/rounding.h"

namespace wan {

// The activations of one forward. Each tensor takes hundreds of megabytes for a long video, so all
// blocks reuse them.
struct Activations {
  at::Tensor residual;  // fp32, shape [rows, dim]
  at::Tensor narrow;    // shape [rows, dim]: the input of a block part, then its output
  at::Tensor wide;      // memory for the widest tensor inside a block part
  // The rounded input of a part that computes with 8 bits. The codes share the memory of `narrow`.
  RoundedRows rounded;
  bool rounds = false;
};

// Adds the last part's output to the residual stream, and normalises the stream for the next part.
void NextInput(Activations& acts, const at::Tensor& gate, const at::Tensor& factor,
               const at::Tensor& shift, const at::Tensor& index, double eps);

// Multiplies a block part's input, which NextInput has computed, by the weight.
void MultiplyInput(const Activations& acts, const LinearWeights& linear, Activation activation,
                   at::Tensor& out);

// Multiplies an intermediate tensor of a block part by the weight, and leaves the result in
// acts.narrow. If the block computes with 8 bits, the rounded values overwrite `x`.
void MultiplyOutput(const at::Tensor& x, const LinearWeights& linear, Activations& acts);

// Returns the first rows * columns elements of `memory` as a matrix.
at::Tensor Carve(const at::Tensor& memory, int64_t rows, int64_t columns, at::ScalarType dtype);

}  // namespace wan
