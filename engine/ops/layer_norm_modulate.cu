#include <c10/cuda/CUDAGuard.h>

#include "engine/ops/cuda_ops.h"
#include "engine/ops/layer_norm.cuh"
#include "engine/ops/layer_norm_modulate.h"

namespace wan {
namespace {

bool LayerNormModulateCuda(const at::Tensor& x, const at::Tensor& scale, const at::Tensor& shift,
                           const at::Tensor& index, double eps, at::Tensor& out) {
  if (!SupportsLayerNorm(x, scale, shift, index, out)) return false;
  const c10::cuda::CUDAGuard guard(x.device());
  const LayerNormArguments args = MakeLayerNormArguments(x, scale, shift, index, eps, out);
  if (out.scalar_type() == at::kFloat) {
    LaunchLayerNorm<void, float>(args, x.size(0), nullptr, out.mutable_data_ptr());
  } else {
    LaunchLayerNorm<void, __nv_bfloat16>(args, x.size(0), nullptr, out.mutable_data_ptr());
  }
  return true;
}

const bool kRegistered = (GetCudaOps().layer_norm_modulate = &LayerNormModulateCuda, true);

}  // namespace
}  // namespace wan
