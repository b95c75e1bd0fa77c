#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include "engine/ops/cuda_ops.h"
#include "engine/ops/rms_norm_rope.h"
#include "engine/ops/row_kernel.cuh"

namespace wan {
namespace {

struct Rotary {
  const float* table = nullptr;  // [tokens, head_dim]; nullptr: no rotation
  int64_t tokens = 1;
  int head_dim = kVector;
};

// Rotates 8 neighbouring channels of a head.
__device__ Vector Rotate(const Vector& v, const float* cos, const float* sin) {
  const float4 c4 = *reinterpret_cast<const float4*>(cos);
  const float4 s4 = *reinterpret_cast<const float4*>(sin);
  const float c[4] = {c4.x, c4.y, c4.z, c4.w};
  const float s[4] = {s4.x, s4.y, s4.z, s4.w};
  Vector result;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const float even = v.values[2 * i];
    const float odd = v.values[2 * i + 1];
    result.values[2 * i] = even * c[i] - odd * s[i];
    result.values[2 * i + 1] = even * s[i] + odd * c[i];
  }
  return result;
}

// A block handles all parts of one row, so that the loads of the parts overlap.
template <typename T, int kParts>
__global__ void __launch_bounds__(kMaxThreads)
    RmsNormRopeKernel(T* x, int64_t stride, int dim, const float* weight, float eps,
                      Rotary rotary) {
  __shared__ float shared[kParts][kWarp];

  T* const row = x + static_cast<int64_t>(blockIdx.x) * stride;
  const int column = threadIdx.x * kVector;
  const bool active = column < dim;

  Vector parts[kParts] = {};
  float squares[kParts] = {};
  if (active) {
#pragma unroll
    for (int p = 0; p < kParts; ++p) parts[p] = LoadVector(row + p * dim + column);
  }
#pragma unroll
  for (int p = 0; p < kParts; ++p) {
#pragma unroll
    for (int k = 0; k < kVector; ++k) squares[p] += parts[p].values[k] * parts[p].values[k];
  }
  BlockSum(squares, shared);
  if (!active) return;

  const float* cos = nullptr;
  const float* sin = nullptr;
  if (rotary.table != nullptr) {
    cos =
        rotary.table + blockIdx.x % rotary.tokens * rotary.head_dim + column % rotary.head_dim / 2;
    sin = cos + rotary.head_dim / 2;
  }
#pragma unroll
  for (int p = 0; p < kParts; ++p) {
    const float inverse = rsqrtf(squares[p] / static_cast<float>(dim) + eps);
    const Vector factor = LoadVector(weight + p * dim + column);
    Vector result;
#pragma unroll
    for (int k = 0; k < kVector; ++k) {
      result.values[k] = parts[p].values[k] * inverse * factor.values[k];
    }
    if (cos != nullptr) result = Rotate(result, cos, sin);
    StoreVector(row + p * dim + column, result);
  }
}

template <typename T, int kParts>
void Launch(at::Tensor& x, const at::Tensor& weight, double eps, const Rotary& rotary) {
  const int64_t dim = weight.size(1);
  RmsNormRopeKernel<T, kParts><<<static_cast<unsigned>(x.size(0)), ThreadsForRow(dim), 0,
                                 c10::cuda::getCurrentCUDAStream()>>>(
      static_cast<T*>(x.mutable_data_ptr()), x.stride(0), static_cast<int>(dim),
      weight.const_data_ptr<float>(), static_cast<float>(eps), rotary);
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}

bool RmsNormRopeCuda(at::Tensor& x, const at::Tensor& weight, double eps,
                     const at::Tensor& rotary) {
  const int64_t parts = weight.size(0);
  const int64_t dim = weight.size(1);
  const bool supported = HasVectorRows(x) && HasVectorRows(weight) && weight.is_contiguous() &&
                         weight.scalar_type() == at::kFloat && x.size(1) == parts * dim &&
                         RowFitsBlock(dim) && (parts == 1 || parts == 2);
  if (!supported) return false;

  Rotary table;
  if (rotary.defined()) {
    const int64_t head_dim = rotary.size(1);
    if (!HasVectorRows(rotary) || !rotary.is_contiguous() || rotary.scalar_type() != at::kFloat ||
        head_dim % kVector != 0 || dim % head_dim != 0) {
      return false;
    }
    table = {rotary.const_data_ptr<float>(), rotary.size(0), static_cast<int>(head_dim)};
  }
  if (x.size(0) == 0) return true;

  const c10::cuda::CUDAGuard guard(x.device());
  const bool wide = x.scalar_type() == at::kFloat;
  const auto launch = parts == 1 ? (wide ? &Launch<float, 1> : &Launch<__nv_bfloat16, 1>)
                                 : (wide ? &Launch<float, 2> : &Launch<__nv_bfloat16, 2>);
  launch(x, weight, eps, table);
  return true;
}

const bool kRegistered = (GetCudaOps().rms_norm_rope = &RmsNormRopeCuda, true);

}  // namespace
}  // namespace wan
