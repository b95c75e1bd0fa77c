#include "engine/ops/gate_residual_norm.h"

#include <ATen/ops/empty_like.h>
#include <ATen/record_function.h>

#include <vector>

#include "engine/ops/cuda_ops.h"
#include "engine/ops/layer_norm_modulate.h"
#include "engine/ops/row_table.h"

namespace wan {

void GateResidualNorm(const at::Tensor& y, const at::Tensor& gate, at::Tensor& x,
                      const at::Tensor& scale, const at::Tensor& shift, const at::Tensor& index,
                      double eps, at::Tensor& out) {
  RECORD_USER_SCOPE_WITH_INPUTS("wan::gate_residual_norm", (std::vector<c10::IValue>{y, gate}));
  if (x.is_cuda()) {
    const auto kernel = GetCudaOps().gate_residual_norm;
    if (kernel != nullptr && kernel(y, gate, x, scale, shift, index, eps, out)) return;
  }
  GateResidualNormReference(y, gate, x, scale, shift, index, eps, out);
}

void GateResidualNorm(const at::Tensor& y, const at::Tensor& gate, at::Tensor& x,
                      const at::Tensor& scale, const at::Tensor& shift, const at::Tensor& index,
                      double eps, const RoundedRows& out) {
  RECORD_USER_SCOPE_WITH_INPUTS("wan::gate_residual_norm", (std::vector<c10::IValue>{y, gate}));
  if (x.is_cuda()) {
    const auto kernel = GetCudaOps().rounded_norm;
    if (kernel != nullptr && kernel(y, gate, x, scale, shift, index, eps, out)) return;
  }
  at::Tensor norm = at::empty_like(x);
  GateResidualNormReference(y, gate, x, scale, shift, index, eps, norm);
  RoundRowsReference(norm, out);
}

void GateResidualNormReference(const at::Tensor& y, const at::Tensor& gate, at::Tensor& x,
                               const at::Tensor& scale, const at::Tensor& shift,
                               const at::Tensor& index, double eps, at::Tensor& out) {
  if (gate.defined()) {
    x.addcmul_(y.to(at::kFloat), ExpandRows(gate, index));
  } else {
    x.add_(y);
  }
  LayerNormModulateReference(x, scale, shift, index, eps, out);
}

}  // namespace wan
