#include "engine/ops/layer_norm_modulate.h"

#include <ATen/ops/empty_like.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/record_function.h>

#include "engine/ops/cuda_ops.h"
#include "engine/ops/row_table.h"

namespace wan {

void LayerNormModulate(const at::Tensor& x, const at::Tensor& scale, const at::Tensor& shift,
                       const at::Tensor& index, double eps, at::Tensor& out) {
  RECORD_USER_SCOPE("wan::layer_norm_modulate");
  if (x.is_cuda()) {
    const auto kernel = GetCudaOps().layer_norm_modulate;
    if (kernel != nullptr && kernel(x, scale, shift, index, eps, out)) return;
  }
  LayerNormModulateReference(x, scale, shift, index, eps, out);
}

void LayerNormModulate(const at::Tensor& x, const at::Tensor& scale, const at::Tensor& shift,
                       const at::Tensor& index, double eps, const RoundedRows& out) {
  RECORD_USER_SCOPE("wan::layer_norm_modulate");
  if (x.is_cuda()) {
    const auto kernel = GetCudaOps().rounded_norm;
    at::Tensor unchanged = x;
    if (kernel != nullptr &&
        kernel(/*y=*/{}, /*gate=*/{}, unchanged, scale, shift, index, eps, out)) {
      return;
    }
  }
  at::Tensor norm = at::empty_like(x);
  LayerNormModulateReference(x, scale, shift, index, eps, norm);
  RoundRowsReference(norm, out);
}

void LayerNormModulateReference(const at::Tensor& x, const at::Tensor& scale,
                                const at::Tensor& shift, const at::Tensor& index, double eps,
                                at::Tensor& out) {
  at::Tensor norm = at::layer_norm(x, {x.size(1)}, {}, {}, eps);
  out.copy_(norm.mul_(ExpandRows(scale, index)).add_(ExpandRows(shift, index)));
}

}  // namespace wan
