#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include "engine/ops/cuda_ops.h"
#include "engine/ops/rounding.cuh"

namespace wan {
namespace {

template <int kVectors>
__global__ void __launch_bounds__(kMaxThreads)
    RoundRowsKernel(const __nv_bfloat16* x, int64_t x_stride, int dim, __nv_fp8_e4m3* codes,
                    int64_t codes_stride, float* scales) {
  __shared__ float shared[kWarp];
  const int64_t row = blockIdx.x;
  Vector v[kVectors] = {};
#pragma unroll
  for (int i = 0; i < kVectors; ++i) {
    const int column = (i * static_cast<int>(blockDim.x) + static_cast<int>(threadIdx.x)) * kVector;
    if (column < dim) v[i] = LoadVector(x + row * x_stride + column);
  }
  StoreRounded(v, dim, shared, codes + row * codes_stride, scales + row);
}

template <int kVectors>
void Launch(const at::Tensor& x, const RoundedRows& out) {
  RoundRowsKernel<kVectors>
      <<<static_cast<unsigned>(x.size(0)), ThreadsForRow((x.size(1) + kVectors - 1) / kVectors), 0,
         c10::cuda::getCurrentCUDAStream()>>>(
          static_cast<const __nv_bfloat16*>(x.const_data_ptr()), x.stride(0),
          static_cast<int>(x.size(1)), static_cast<__nv_fp8_e4m3*>(out.codes.mutable_data_ptr()),
          out.codes.stride(0), out.scales.mutable_data_ptr<float>());
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}

bool RoundRowsCuda(const at::Tensor& x, const RoundedRows& out) {
  constexpr int kMostVectors = 2;
  if (!HasVectorRows(x) || x.scalar_type() != at::kBFloat16 || !HoldsRounded(x, out) ||
      x.size(1) % kVector != 0 || x.size(1) > kMostVectors * kMaxThreads * kVector) {
    return false;
  }
  if (x.size(0) == 0) return true;
  const c10::cuda::CUDAGuard guard(x.device());
  if (RowFitsBlock(x.size(1))) {
    Launch<1>(x, out);
  } else {
    Launch<kMostVectors>(x, out);
  }
  return true;
}

const bool kRegistered = (GetCudaOps().round_rows = &RoundRowsCuda, true);

}  // namespace
}  // namespace wan
