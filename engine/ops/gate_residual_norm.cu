#include <c10/cuda/CUDAGuard.h>

#include "engine/ops/cuda_ops.h"
#include "engine/ops/gate_residual_norm.h"
#include "engine/ops/layer_norm.cuh"

namespace wan {
namespace {

bool GateResidualNormCuda(const at::Tensor& y, const at::Tensor& gate, at::Tensor& x,
                          const at::Tensor& scale, const at::Tensor& shift, const at::Tensor& index,
                          double eps, at::Tensor& out) {
  if (!SupportsLayerNorm(x, scale, shift, index, out) || !SupportsResidual(x, y, gate, index)) {
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

bool RoundedNormCuda(const at::Tensor& y, const at::Tensor& gate, at::Tensor& x,
                     const at::Tensor& scale, const at::Tensor& shift, const at::Tensor& index,
                     double eps, const RoundedRows& out) {
  if (!SupportsLayerNorm(x, scale, shift, index) || !HoldsRounded(x, out) ||
      (y.defined() && !SupportsResidual(x, y, gate, index))) {
    return false;
  }
  const c10::cuda::CUDAGuard guard(x.device());
  LayerNormArguments args = MakeLayerNormArguments(x, scale, shift, index, eps, out.codes);
  args.row_scales = out.scales.mutable_data_ptr<float>();
  if (y.defined()) args.y_stride = y.stride(0);
  if (gate.defined()) args.gate = ToRowTable(gate);
  const auto launch = !y.defined() ? &LaunchLayerNorm<void, __nv_fp8_e4m3>
                      : y.scalar_type() == at::kFloat
                          ? &LaunchLayerNorm<float, __nv_fp8_e4m3>
                          : &LaunchLayerNorm<__nv_bfloat16, __nv_fp8_e4m3>;
  launch(args, x.size(0), y.defined() ? y.const_data_ptr() : nullptr, out.codes.mutable_data_ptr());
  return true;
}

const bool kRegistered = (GetCudaOps().gate_residual_norm = &GateResidualNormCuda,
                          GetCudaOps().rounded_norm = &RoundedNormCuda, true);

}  // namespace
}  // namespace wan
