#include "engine/models/wan/activations.h"

#include "engine/ops/gate_residual_norm.h"
#include "engine/ops/linear.h"

namespace wan {
namespace {

// Returns the weight in 8 bits. Rounds the weight now unless it was loaded in 8 bits.
RoundedRows Rounded(const LinearWeights& linear) {
  if (linear.rounded.defined()) return linear.rounded;
  const at::Tensor& weight = linear.weight;
  RoundedRows result = MakeRounded(weight.size(0), weight.size(1), weight.device());
  RoundRows(weight, result);
  return result;
}

}  // namespace

void NextInput(Activations& acts, const at::Tensor& gate, const at::Tensor& factor,
               const at::Tensor& shift, const at::Tensor& index, double eps) {
  if (acts.rounds) {
    GateResidualNorm(acts.narrow, gate, acts.residual, factor, shift, index, eps, acts.rounded);
  } else {
    GateResidualNorm(acts.narrow, gate, acts.residual, factor, shift, index, eps, acts.narrow);
  }
}

void MultiplyInput(const Activations& acts, const LinearWeights& linear, Activation activation,
                   at::Tensor& out) {
  if (acts.rounds) {
    RoundedLinear(acts.rounded, Rounded(linear), linear.bias, activation, out);
  } else if (activation == Activation::kGeluTanh) {
    LinearGelu(acts.narrow, linear.weight, linear.bias, out);
  } else {
    Linear(acts.narrow, linear.weight, linear.bias, out);
  }
}

void MultiplyOutput(const at::Tensor& x, const LinearWeights& linear, Activations& acts) {
  if (!acts.rounds) {
    Linear(x, linear.weight, linear.bias, acts.narrow);
    return;
  }
  const RoundedRows rounded = RoundedIn(x, x.size(1));
  RoundRows(x, rounded);
  RoundedLinear(rounded, Rounded(linear), linear.bias, Activation::kNone, acts.narrow);
}

at::Tensor Carve(const at::Tensor& memory, int64_t rows, int64_t columns, at::ScalarType dtype) {
  const int64_t bytes = rows * columns * static_cast<int64_t>(at::elementSize(dtype));
  return memory.narrow(0, 0, bytes).view(dtype).view({rows, columns});
}

}  // namespace wan
