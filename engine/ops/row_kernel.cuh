// Code that the kernels over rows of activations share. A block handles one row. A thread handles 8
// neighbouring values, which it loads and stores as 16 bytes (in bf16) and keeps in fp32.
#pragma once

#include <ATen/core/Tensor.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

namespace wan {

constexpr int kVector = 8;
constexpr int kWarp = 32;
constexpr int kMaxThreads = 1024;

struct Vector {
  float values[kVector];
};

__device__ inline Vector LoadVector(const float* p) {
  const float4 low = reinterpret_cast<const float4*>(p)[0];
  const float4 high = reinterpret_cast<const float4*>(p)[1];
  return {{low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w}};
}

__device__ inline Vector LoadVector(const __nv_bfloat16* p) {
  const uint4 bits = *reinterpret_cast<const uint4*>(p);
  const uint32_t pairs[4] = {bits.x, bits.y, bits.z, bits.w};
  Vector result;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    // A bf16 number is the upper half of an fp32 number; the first of a pair is in the lower half
    // of the word.
    result.values[2 * i] = __uint_as_float(pairs[i] << 16);
    result.values[2 * i + 1] = __uint_as_float(pairs[i] & 0xffff0000u);
  }
  return result;
}

__device__ inline Vector LoadVector(const __half* p) {
  const uint4 bits = *reinterpret_cast<const uint4*>(p);
  const __half2* pairs = reinterpret_cast<const __half2*>(&bits);
  Vector result;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const float2 pair = __half22float2(pairs[i]);
    result.values[2 * i] = pair.x;
    result.values[2 * i + 1] = pair.y;
  }
  return result;
}

__device__ inline void StoreVector(float* p, const Vector& v) {
  reinterpret_cast<float4*>(p)[0] = {v.values[0], v.values[1], v.values[2], v.values[3]};
  reinterpret_cast<float4*>(p)[1] = {v.values[4], v.values[5], v.values[6], v.values[7]};
}

__device__ inline void StoreVector(__nv_bfloat16* p, const Vector& v) {
  __nv_bfloat162 pairs[4];
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    pairs[i] = __floats2bfloat162_rn(v.values[2 * i], v.values[2 * i + 1]);
  }
  *reinterpret_cast<uint4*>(p) = *reinterpret_cast<const uint4*>(pairs);
}

// Values beyond fp16's range become infinite.
__device__ inline void StoreVector(__half* p, const Vector& v) {
  __half2 pairs[4];
#pragma unroll
  for (int i = 0; i < 4; ++i) pairs[i] = __floats2half2_rn(v.values[2 * i], v.values[2 * i + 1]);
  *reinterpret_cast<uint4*>(p) = *reinterpret_cast<const uint4*>(pairs);
}

// Sums each of kCount numbers over the threads of a block; every thread gets the sums. `shared` has
// kCount numbers per warp; two consecutive calls must not use the same memory.
template <int kCount>
__device__ inline void BlockSum(float (&sums)[kCount], float (*shared)[kWarp]) {
#pragma unroll
  for (int c = 0; c < kCount; ++c) {
#pragma unroll
    for (int distance = kWarp / 2; distance > 0; distance /= 2) {
      sums[c] += __shfl_xor_sync(0xffffffffu, sums[c], distance);
    }
  }
  const int warps = blockDim.x / kWarp;
  const int lane = threadIdx.x % kWarp;
  if (lane == 0) {
#pragma unroll
    for (int c = 0; c < kCount; ++c) shared[c][threadIdx.x / kWarp] = sums[c];
  }
  __syncthreads();
#pragma unroll
  for (int c = 0; c < kCount; ++c) {
    sums[c] = lane < warps ? shared[c][lane] : 0.0f;
#pragma unroll
    for (int distance = kWarp / 2; distance > 0; distance /= 2) {
      sums[c] += __shfl_xor_sync(0xffffffffu, sums[c], distance);
    }
  }
}

// Returns the largest of the block's numbers, which are not negative, to every thread. `shared` has
// one number per warp and is used by no other call.
__device__ inline float BlockMaximum(float value, float* shared) {
#pragma unroll
  for (int distance = kWarp / 2; distance > 0; distance /= 2) {
    value = fmaxf(value, __shfl_xor_sync(0xffffffffu, value, distance));
  }
  const int lane = threadIdx.x % kWarp;
  if (lane == 0) shared[threadIdx.x / kWarp] = value;
  __syncthreads();
  value = lane < static_cast<int>(blockDim.x) / kWarp ? shared[lane] : 0.0f;
#pragma unroll
  for (int distance = kWarp / 2; distance > 0; distance /= 2) {
    value = fmaxf(value, __shfl_xor_sync(0xffffffffu, value, distance));
  }
  return value;
}

// The number of threads of a block that handles rows of `dim` values.
inline int ThreadsForRow(int64_t dim) {
  return static_cast<int>((dim / kVector + kWarp - 1) / kWarp * kWarp);
}

// Whether a block can handle rows of `dim` values.
inline bool RowFitsBlock(int64_t dim) {
  return dim > 0 && dim % kVector == 0 && dim / kVector <= kMaxThreads;
}

// Whether `t` is [rows, columns] of a dtype that vectors can be loaded from, with every row at a
// multiple of 16 bytes.
inline bool HasVectorRows(const at::Tensor& t) {
  const int64_t row_bytes = t.stride(0) * t.element_size();
  return t.dim() == 2 && t.is_cuda() && t.stride(1) == 1 && row_bytes % 16 == 0 &&
         reinterpret_cast<uintptr_t>(t.const_data_ptr()) % 16 == 0 &&
         (t.scalar_type() == at::kFloat || t.scalar_type() == at::kBFloat16);
}

// A table [n, dim]: one vector for all rows, or one per value of a row index.
struct RowTable {
  const float* data = nullptr;
  int64_t stride = 0;  // elements between vectors; 0 if there is only one vector
};

// Whether `table` can be used with `index` for rows of `dim` values.
inline bool IsRowTable(const at::Tensor& table, const at::Tensor& index, int64_t dim) {
  return HasVectorRows(table) && table.scalar_type() == at::kFloat && table.size(1) == dim &&
         (table.size(0) == 1 || (index.defined() && index.scalar_type() == at::kInt));
}

inline RowTable ToRowTable(const at::Tensor& table) {
  return {table.const_data_ptr<float>(), table.size(0) == 1 ? 0 : table.stride(0)};
}

__device__ inline Vector LoadRowOf(const RowTable& table, int64_t i, int column) {
  return LoadVector(table.data + i * table.stride + column);
}

}  // namespace wan
