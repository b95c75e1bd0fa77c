// The part of rounding.h that runs in kernels: a block rounds the row that its threads hold.
#pragma once

#include <cuda_fp8.h>

#include "engine/ops/rounding.h"
#include "engine/ops/row_kernel.cuh"

namespace wan {

constexpr auto kE4m3Limit = static_cast<float>(kLargestE4m3);

// Whether kernels can write the rounded x to `out`.
inline bool HoldsRounded(const at::Tensor& x, const RoundedRows& out) {
  return out.codes.is_cuda() && out.codes.sizes() == x.sizes() && out.codes.stride(1) == 1 &&
         out.codes.stride(0) % kVector == 0 &&
         reinterpret_cast<uintptr_t>(out.codes.const_data_ptr()) % kVector == 0 &&
         out.scales.is_contiguous();
}

// Writes eight values times `inverse` as e4m3.
__device__ inline void StoreE4m3(__nv_fp8_e4m3* to, const Vector& v, float inverse) {
  uint16_t pairs[kVector / 2];
#pragma unroll
  for (int i = 0; i < kVector / 2; ++i) {
    pairs[i] = __nv_cvt_float2_to_fp8x2(
        make_float2(v.values[2 * i] * inverse, v.values[2 * i + 1] * inverse), __NV_SATFINITE,
        __NV_E4M3);
  }
  *reinterpret_cast<uint2*>(to) = *reinterpret_cast<const uint2*>(pairs);
}

// Rounds the block's row: thread t holds vectors t, t + threads and so on of `dim` values, and
// zeros beyond. All threads of the block must call StoreRounded. `row` may be the memory from which
// the row was read.
template <int kVectors>
__device__ inline void StoreRounded(const Vector (&v)[kVectors], int dim, float* shared,
                                    __nv_fp8_e4m3* row, float* scale) {
  float largest = 0;
#pragma unroll
  for (int i = 0; i < kVectors; ++i) {
#pragma unroll
    for (int k = 0; k < kVector; ++k) largest = fmaxf(largest, fabsf(v[i].values[k]));
  }
  largest = BlockMaximum(largest, shared);
  if (threadIdx.x == 0) *scale = largest / kE4m3Limit;
  const float inverse = largest == 0 ? 0.0f : kE4m3Limit / largest;
#pragma unroll
  for (int i = 0; i < kVectors; ++i) {
    const int column = (i * static_cast<int>(blockDim.x) + static_cast<int>(threadIdx.x)) * kVector;
    if (column < dim) StoreE4m3(row + column, v[i], inverse);
  }
}

}  // namespace wan
