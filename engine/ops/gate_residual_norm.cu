#include <c10/cuda/CUDAGuard.h>

#include "engine/ops/cuda_ops.h"
#include "engine/ops/gate_residual_norm.h"
#include "engine/ops/layer_norm.cuh"

namespace wan {
namespace {

bool GateResidualNormCuda(const at::Tensor& y, const at::Tensor& gate, at::Tensor& x,
                          const at::Tensor& scale, const at::Tensor& shift, const at::Tensor& index,
                          double eps, at::Tensor& out) {
  if (!SupportsLayerNorm(x, scale, shift, index, out) || !HasVectorRows(y) ||
      y.sizes() != x.sizes() || (gate.defined() && !IsRowTable(gate, index, x.size(1)))) {
    return false;
  }
  const c10::cuda::CUDAGuard guard(x.device());
  LayerNormArguments args = MakeLayerNormArguments(x, scale, shift, index, eps, out);
  args.y_stride = y.stride(0);
  if (gate.defined()) args.gate = ToRowTable(gate);

  const bool wide_y = y.scalar_type() == at::kFloat;
  const bool wide_out = out.scalar_type() == at::kFloat;
  const auto launch =
      wide_y ? (wide_out ? &LaunchLayerNorm<float, float> : &LaunchLayerNorm<float, __nv_bfloat16>)
             : (wide_out ? &LaunchLayerNorm<__nv_bfloat16, float>
                         : &LaunchLayerNorm<__nv_bfloat16, __nv_bfloat16>);
  launch(args, x.size(0), y.const_data_ptr(), out.mutable_data_ptr());
  return true;
}

const bool kRegistered = (GetCudaOps().gate_residual_norm = &GateResidualNormCuda, true);

}  // namespace
}  // namespace wan
