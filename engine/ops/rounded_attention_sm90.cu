// RoundedAttentionInto (rounded_attention.h) in bf16 for heads of 128 channels on compute
// capability 9.0, and the rounding of its queries and keys.
#include <ATen/ops/empty.h>
#include <cuda_bf16.h>

#include "engine/ops/attention_sm90.cuh"
#include "engine/ops/rounded_attention.h"

namespace wan {
namespace {

using namespace sm90;

constexpr int kWarpSize = 32;
constexpr int kRoundingWarps = 8;
constexpr int kRoundingThreads = kRoundingWarps * kWarpSize;
constexpr int kLaneChannels = kHeadDim / kWarpSize;
constexpr float kLargestCode = 127;
// Rows of a tile that one warp rounds.
constexpr int kWarpRows = static_cast<int>(kRoundedKeyTile) / kRoundingWarps;

// Rows [batch, row, head, 128] of bf16, whose codes take the place of their first 128 bytes.
struct Heads {
  __nv_bfloat16* data;
  int64_t batch_stride, row_stride, head_stride;  // in elements
  int rows, heads;
};

// The mean of each channel over `keys`, [batch, head, 128]: one block per head and batch entry. The
// order of the sum depends on nothing but the number of rows.
__global__ void __launch_bounds__(1024) MeanKernel(Heads keys, float* mean) {
  constexpr int kParts = 1024 / kHeadDim;
  __shared__ float sums[kParts][kHeadDim];
  const int channel = threadIdx.x % kHeadDim;
  const int part = threadIdx.x / kHeadDim;
  const __nv_bfloat16* const from =
      keys.data + blockIdx.y * keys.batch_stride + blockIdx.x * keys.head_stride + channel;
  float sum = 0;
  for (int row = part; row < keys.rows; row += kParts) {
    sum += __bfloat162float(from[row * keys.row_stride]);
  }
  sums[part][channel] = sum;
  __syncthreads();
  if (part != 0) return;
#pragma unroll
  for (int i = 1; i < kParts; ++i) sum += sums[i][channel];
  mean[(static_cast<int64_t>(blockIdx.y) * keys.heads + blockIdx.x) * kHeadDim + channel] =
      sum / static_cast<float>(keys.rows);
}

struct Row {
  float values[kLaneChannels];  // neighbouring channels
};

// Multiplies a row, which a warp holds, by the orthonormal Hadamard matrix.
__device__ __forceinline__ void Rotate(Row& row) {
  float(&v)[kLaneChannels] = row.values;
#pragma unroll
  for (int distance = 1; distance < kLaneChannels; distance *= 2) {
#pragma unroll
    for (int i = 0; i < kLaneChannels; ++i) {
      if ((i & distance) != 0) continue;
      const float low = v[i];
      const float high = v[i + distance];
      v[i] = low + high;
      v[i + distance] = low - high;
    }
  }
  const int lane = threadIdx.x % kWarpSize;
#pragma unroll
  for (int distance = 1; distance < kWarpSize; distance *= 2) {
#pragma unroll
    for (int i = 0; i < kLaneChannels; ++i) {
      const float other = __shfl_xor_sync(~0u, v[i], distance);
      v[i] = (lane & distance) != 0 ? other - v[i] : v[i] + other;
    }
  }
#pragma unroll
  for (int i = 0; i < kLaneChannels; ++i) v[i] *= 0.08838834764831845f;  // 1 / sqrt(128)
}

__device__ __forceinline__ float LargestOf(const Row& row) {
  float largest = 0;
#pragma unroll
  for (int i = 0; i < kLaneChannels; ++i) largest = fmaxf(largest, fabsf(row.values[i]));
  return largest;
}

__device__ __forceinline__ float WarpMaximum(float value) {
#pragma unroll
  for (int distance = kWarpSize / 2; distance > 0; distance /= 2) {
    value = fmaxf(value, __shfl_xor_sync(~0u, value, distance));
  }
  return value;
}

__device__ __forceinline__ void StoreCodes(const Row& row, float inverse, void* to) {
  char4 codes;
  codes.x = static_cast<signed char>(__float2int_rn(row.values[0] * inverse));
  codes.y = static_cast<signed char>(__float2int_rn(row.values[1] * inverse));
  codes.z = static_cast<signed char>(__float2int_rn(row.values[2] * inverse));
  codes.w = static_cast<signed char>(__float2int_rn(row.values[3] * inverse));
  static_cast<char4*>(to)[threadIdx.x % kWarpSize] = codes;
}

// Codes cannot be NaN or infinite, but scales can: the scale of rows that have a value which is not
// finite is NaN, and so are all scores that are computed with them.
__device__ __forceinline__ float ScaleOf(float largest, bool finite, float factor) {
  return finite ? largest * factor : NAN;
}

// A block rounds a tile of kRoundedKeyTile rows of one head. With kByTile the rows lose `mean` and
// share a scale, [batch, head, tile]. Otherwise each row has a scale of its own, [batch, head,
// row]. A scale is the largest magnitude times `factor`.
template <bool kByTile>
__global__ void __launch_bounds__(kRoundingThreads)
    RoundHeadsKernel(Heads heads, const float* mean, float factor, float* scales) {
  static_assert(kLaneChannels == 4, "a lane loads 8 bytes and stores 4");
  __shared__ float shared[kRoundingWarps];
  const int lane = threadIdx.x % kWarpSize;
  const int warp = threadIdx.x / kWarpSize;
  const int64_t head = static_cast<int64_t>(blockIdx.z) * heads.heads + blockIdx.y;
  __nv_bfloat16* const data =
      heads.data + blockIdx.z * heads.batch_stride + blockIdx.y * heads.head_stride;
  const int first = blockIdx.x * static_cast<int>(kRoundedKeyTile) + warp;
  float subtracted[kLaneChannels] = {};
  if (kByTile) {
#pragma unroll
    for (int i = 0; i < kLaneChannels; ++i) {
      subtracted[i] = mean[head * kHeadDim + lane * kLaneChannels + i];
    }
  }
  Row rows[kWarpRows];
  float largest = 0;
  bool finite = true;
#pragma unroll
  for (int r = 0; r < kWarpRows; ++r) {
    const int row = first + r * kRoundingWarps;
    uint2 bits = {};
    if (row < heads.rows) {
      bits = *reinterpret_cast<const uint2*>(data + row * heads.row_stride + lane * kLaneChannels);
    }
    rows[r].values[0] = __uint_as_float(bits.x << 16) - subtracted[0];
    rows[r].values[1] = __uint_as_float(bits.x & 0xffff0000u) - subtracted[1];
    rows[r].values[2] = __uint_as_float(bits.y << 16) - subtracted[2];
    rows[r].values[3] = __uint_as_float(bits.y & 0xffff0000u) - subtracted[3];
    Rotate(rows[r]);
    if (row >= heads.rows) continue;
    // The rotation gives every value of a row a part of what is not finite.
    const bool row_is_finite = isfinite(rows[r].values[0]);
    if (kByTile) {
      largest = fmaxf(largest, LargestOf(rows[r]));
      finite = finite && row_is_finite;
      continue;
    }
    const float of_row = WarpMaximum(LargestOf(rows[r]));
    if (lane == 0) scales[head * heads.rows + row] = ScaleOf(of_row, row_is_finite, factor);
    StoreCodes(rows[r], of_row == 0 ? 0.f : kLargestCode / of_row, data + row * heads.row_stride);
  }
  if (!kByTile) return;
  largest = WarpMaximum(largest);
  if (lane == 0) shared[warp] = largest;
  const bool all_finite = __syncthreads_and(finite) != 0;
#pragma unroll
  for (int i = 0; i < kRoundingWarps; ++i) largest = fmaxf(largest, shared[i]);
  if (threadIdx.x == 0) {
    scales[head * gridDim.x + blockIdx.x] = ScaleOf(largest, all_finite, factor);
  }
  const float inverse = largest == 0 ? 0.f : kLargestCode / largest;
#pragma unroll
  for (int r = 0; r < kWarpRows; ++r) {
    const int row = first + r * kRoundingWarps;
    if (row < heads.rows) StoreCodes(rows[r], inverse, data + row * heads.row_stride);
  }
}

Heads ToHeads(const at::Tensor& t) {
  return {static_cast<__nv_bfloat16*>(t.mutable_data_ptr()),
          t.stride(0),
          t.stride(1),
          t.stride(2),
          static_cast<int>(t.size(1)),
          static_cast<int>(t.size(2))};
}

dim3 RoundingGrid(const at::Tensor& t) {
  return {static_cast<unsigned>((t.size(1) + kRoundedKeyTile - 1) / kRoundedKeyTile),
          static_cast<unsigned>(t.size(2)), static_cast<unsigned>(t.size(0))};
}

void RoundQueriesCuda(const at::Tensor& query, const RoundedHeads& out) {
  const c10::cuda::CUDAGuard guard(query.device());
  const auto factor = static_cast<float>(1 / (kLargestCode * std::sqrt(double{kHeadDim})));
  RoundHeadsKernel</*kByTile=*/false>
      <<<RoundingGrid(query), kRoundingThreads, 0, c10::cuda::getCurrentCUDAStream()>>>(
          ToHeads(query), nullptr, factor, out.scales.mutable_data_ptr<float>());
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}

void RoundKeysCuda(const at::Tensor& key, const at::Tensor& averaged, const RoundedHeads& out) {
  const c10::cuda::CUDAGuard guard(key.device());
  const at::Tensor mean =
      at::empty({key.size(0), key.size(2), kHeadDim}, key.options().dtype(at::kFloat));
  const auto stream = c10::cuda::getCurrentCUDAStream();
  const dim3 heads(static_cast<unsigned>(key.size(2)), static_cast<unsigned>(key.size(0)));
  MeanKernel<<<heads, 1024, 0, stream>>>(ToHeads(averaged), mean.mutable_data_ptr<float>());
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  RoundHeadsKernel</*kByTile=*/true><<<RoundingGrid(key), kRoundingThreads, 0, stream>>>(
      ToHeads(key), mean.const_data_ptr<float>(), 1 / kLargestCode,
      out.scales.mutable_data_ptr<float>());
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}

bool RoundedAttentionCuda(const RoundedHeads& query, const RoundedHeads& key,
                          const at::Tensor& value, at::Tensor& out) {
  const bool supported =
      HasRowsOfHeads(query.codes, at::kChar) && HasRowsOfHeads(key.codes, at::kChar) &&
      HasRowsOfHeads(value, at::kBFloat16) && HasRowsOfHeads(out, at::kBFloat16) &&
      out.is_contiguous() && out.sizes() == query.codes.sizes() &&
      key.codes.sizes() == value.sizes() && key.codes.size(0) == query.codes.size(0) &&
      key.codes.size(2) == query.codes.size(2) && key.scales.is_contiguous() &&
      query.scales.stride(2) == 1 &&
      (query.scales.size(0) == 1 ||
       query.scales.stride(0) == query.scales.size(1) * query.scales.stride(1)) &&
      GetCudaOps().compute_capability(value.get_device()) == 90;
  Problem problem = {};
  if (!supported || !DescribeTensor(query.codes, kGroupRows, problem.query) ||
      !DescribeTensor(key.codes, IntegerForm::kKeys / kClusterBlocks, problem.key) ||
      !DescribeTensor(value, IntegerForm::kKeys, problem.value) ||
      !FillProblem<IntegerForm>(query.codes, key.codes, out, problem)) {
    return false;
  }
  problem.scale = static_cast<float>(std::log2(std::exp(1.0)));
  problem.query_scales = query.scales.const_data_ptr<float>();
  problem.key_scales = key.scales.const_data_ptr<float>();
  problem.query_scale_stride = query.scales.stride(1);
  LaunchAttention<IntegerForm>(out, problem);
  return true;
}

const bool kRegistered =
    (GetCudaOps().round_queries = &RoundQueriesCuda, GetCudaOps().round_keys = &RoundKeysCuda,
     GetCudaOps().rounded_attention = &RoundedAttentionCuda, true);

}  // namespace
}  // namespace wan
