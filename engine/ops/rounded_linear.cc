#include "engine/ops/rounded_linear.h"

#include <ATen/ops/_scaled_mm.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/gelu.h>
#include <ATen/record_function.h>

#include <vector>

#include "engine/ops/attention.h"
#include "engine/ops/cuda_ops.h"

namespace wan {
namespace {

// LibTorch's product needs dimensions that are multiples of 16.
bool LibraryMultiplies(const RoundedRows& x, const RoundedRows& weight, const at::Tensor& out) {
  return x.codes.is_cuda() && out.scalar_type() == at::kBFloat16 &&
         ComputeCapability(x.codes.device()) >= kFirstE4m3Capability && x.codes.size(1) % 16 == 0 &&
         weight.codes.size(0) % 16 == 0 && HasAlignedRows(x.codes) && HasAlignedRows(weight.codes);
}

}  // namespace

void RoundedLinear(const RoundedRows& x, const RoundedRows& weight, const at::Tensor& bias,
                   Activation activation, at::Tensor& out) {
  RECORD_USER_SCOPE_WITH_INPUTS("wan::rounded_linear",
                                (std::vector<c10::IValue>{x.codes, weight.codes}));
  if (x.codes.is_cuda()) {
    const auto kernel = GetCudaOps().rounded_linear;
    if (kernel != nullptr && kernel(x, weight, bias, activation, out)) return;
  }
  if (!LibraryMultiplies(x, weight, out)) {
    RoundedLinearReference(x, weight, bias, activation, out);
    return;
  }
  out.copy_(at::_scaled_mm(x.codes, weight.codes.t(), x.scales.unsqueeze(1),
                           weight.scales.unsqueeze(0), bias.to(at::kBFloat16),
                           /*scale_result=*/std::nullopt, at::kBFloat16));
  if (activation == Activation::kGeluTanh) at::gelu_(out, "tanh");
}

void RoundedLinearReference(const RoundedRows& x, const RoundedRows& weight, const at::Tensor& bias,
                            Activation activation, at::Tensor& out) {
  at::Tensor result = at::addmm(bias.to(at::kFloat), x.ToFloat(), weight.ToFloat().t());
  if (activation == Activation::kGeluTanh) at::gelu_(result, "tanh");
  out.copy_(result);
}

}  // namespace wan
