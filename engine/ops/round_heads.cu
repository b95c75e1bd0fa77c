// The rounding of queries, keys and values (rounded_attention.h) in bf16, for heads of 128
// channels.
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <cuda_bf16.h>

#include <cmath>
#include <cstdint>

#include "engine/ops/cuda_ops.h"
#include "engine/ops/rounded_attention.h"

namespace wan {
namespace {

constexpr int kHeadDim = 128;
constexpr int kWarpSize = 32;
constexpr int kRoundingWarps = 8;
constexpr int kRoundingThreads = kRoundingWarps * kWarpSize;
constexpr int kLaneChannels = kHeadDim / kWarpSize;
constexpr float kLargestCode = 127;
constexpr float kResidualUnits = 65536;
constexpr int kCodeOfMean = static_cast<int>(kMeanValueCode);
constexpr int kTile = static_cast<int>(kRoundedKeyTile);
constexpr int kWarpRows = kTile / kRoundingWarps;  // rows of a tile that one warp rounds

// Rows [batch, row, head, 128] of bf16. The codes of queries and keys replace the first 128 bytes
// of each row.
struct Heads {
  __nv_bfloat16* data;
  int64_t batch_stride, row_stride, head_stride;  // strides in elements
  int rows, heads;
};

// The mean of each channel over `rows`, [batch, head, 128]: one block per head and batch entry. The
// order of the sum depends only on the number of rows.
__global__ void __launch_bounds__(1024) MeanKernel(Heads rows, float* mean) {
  constexpr int kParts = 1024 / kHeadDim;
  __shared__ float sums[kParts][kHeadDim];
  const int channel = threadIdx.x % kHeadDim;
  const int part = threadIdx.x / kHeadDim;
  const __nv_bfloat16* const from =
      rows.data + blockIdx.y * rows.batch_stride + blockIdx.x * rows.head_stride + channel;
  float sum = 0;
  for (int row = part; row < rows.rows; row += kParts) {
    sum += __bfloat162float(from[row * rows.row_stride]);
  }
  sums[part][channel] = sum;
  __syncthreads();
  if (part != 0) return;
#pragma unroll
  for (int i = 1; i < kParts; ++i) sum += sums[i][channel];
  mean[(static_cast<int64_t>(blockIdx.y) * rows.heads + blockIdx.x) * kHeadDim + channel] =
      sum / static_cast<float>(rows.rows);
}

struct Row {
  float values[kLaneChannels];  // neighbouring channels
};

// Loads a lane's four channels of a row, less `subtracted`.
__device__ __forceinline__ Row LoadRow(const __nv_bfloat16* row,
                                       const float (&subtracted)[kLaneChannels]) {
  const uint2 bits = *reinterpret_cast<const uint2*>(row + static_cast<int>(threadIdx.x) %
                                                               kWarpSize * kLaneChannels);
  return {{__uint_as_float(bits.x << 16) - subtracted[0],
           __uint_as_float(bits.x & 0xffff0000u) - subtracted[1],
           __uint_as_float(bits.y << 16) - subtracted[2],
           __uint_as_float(bits.y & 0xffff0000u) - subtracted[3]}};
}

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

// Codes cannot be NaN or infinite, but scales can. If a row has a value that is not finite, its
// scale is NaN, and so are all its scores.
__device__ __forceinline__ float ScaleOf(float largest, bool finite, float factor) {
  return finite ? largest * factor : NAN;
}

// A block rounds a tile of kRoundedKeyTile rows of one head. With kByTile the kernel subtracts
// `mean` from the rows, which share a scale, [batch, head, tile]. Without kByTile each row has a
// scale of its own, [batch, head, row]. A scale is the largest magnitude times `factor`.
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
  const int first = blockIdx.x * kTile + warp;
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
    if (row >= heads.rows) continue;
    rows[r] = LoadRow(data + row * heads.row_stride, subtracted);
    Rotate(rows[r]);
    // The rotation spreads NaN and infinity to every value of a row, so checking one value is
    // enough.
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

// Finds each channel's largest magnitude of values minus their mean. `largest` has the bits of
// floats, which compare as integers in the order of the floats; NaN is the largest. A block looks
// at kTile rows of one head. `largest`, [batch, head, 128], must be 0 before the launch.
__global__ void __launch_bounds__(kRoundingThreads)
    LargestValueKernel(Heads values, const float* mean, unsigned* largest) {
  __shared__ unsigned shared[kHeadDim];
  const int lane = threadIdx.x % kWarpSize;
  const int64_t head = static_cast<int64_t>(blockIdx.z) * values.heads + blockIdx.y;
  const __nv_bfloat16* const data =
      values.data + blockIdx.z * values.batch_stride + blockIdx.y * values.head_stride;
  float subtracted[kLaneChannels];
  unsigned found[kLaneChannels] = {};
#pragma unroll
  for (int i = 0; i < kLaneChannels; ++i) {
    subtracted[i] = mean[head * kHeadDim + lane * kLaneChannels + i];
  }
  if (threadIdx.x < kHeadDim) shared[threadIdx.x] = 0;
  __syncthreads();
  const int first = blockIdx.x * kTile + static_cast<int>(threadIdx.x) / kWarpSize;
#pragma unroll
  for (int r = 0; r < kWarpRows; ++r) {
    const int row = first + r * kRoundingWarps;
    if (row >= values.rows) break;
    const Row loaded = LoadRow(data + row * values.row_stride, subtracted);
#pragma unroll
    for (int i = 0; i < kLaneChannels; ++i) {
      found[i] = max(found[i], __float_as_uint(fabsf(loaded.values[i])));
    }
  }
#pragma unroll
  for (int i = 0; i < kLaneChannels; ++i) atomicMax(&shared[lane * kLaneChannels + i], found[i]);
  __syncthreads();
  if (threadIdx.x < kHeadDim) {
    atomicMax(&largest[head * kHeadDim + threadIdx.x], shared[threadIdx.x]);
  }
}

// A block writes the codes of a tile of one head's values: [batch, head, 128, padded keys], the
// keys in the order of rounded_attention.h. Each lane takes four keys that are neighbours in this
// order, and writes their four codes at once. The block also adds the rounding errors of the tile's
// values, in units of scale / kResidualUnits, to `residuals` [batch, head, 128]. They are integers,
// so that the order of the sum does not matter.
__global__ void __launch_bounds__(kRoundingThreads)
    RoundValuesKernel(Heads values, const float* mean, const unsigned* largest, uint8_t* codes,
                      float* scales, unsigned long long* residuals) {
  constexpr int kWords = kTile / 4;
  __shared__ uint32_t shared[kHeadDim][kWords + 1];
  __shared__ int shared_residuals[kHeadDim];
  const int lane = threadIdx.x % kWarpSize;
  const int warp = threadIdx.x / kWarpSize;
  const int64_t head = static_cast<int64_t>(blockIdx.z) * values.heads + blockIdx.y;
  const __nv_bfloat16* const data =
      values.data + blockIdx.z * values.batch_stride + blockIdx.y * values.head_stride;
  float subtracted[kLaneChannels];
  float inverse[kLaneChannels];
  int residual[kLaneChannels] = {};
  if (threadIdx.x < kHeadDim) shared_residuals[threadIdx.x] = 0;
  __syncthreads();
#pragma unroll
  for (int i = 0; i < kLaneChannels; ++i) {
    const int64_t channel = head * kHeadDim + lane * kLaneChannels + i;
    const float of_channel = __uint_as_float(largest[channel]);
    subtracted[i] = mean[channel];
    inverse[i] = of_channel == 0 ? 0.f : kLargestCode / of_channel;
    if (blockIdx.x == 0 && warp == 0) {
      scales[channel] = ScaleOf(of_channel, isfinite(of_channel), 1 / kLargestCode);
    }
  }
#pragma unroll
  for (int word = warp; word < kWords; word += kRoundingWarps) {
    uint32_t packed[kLaneChannels] = {};
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      const int row = blockIdx.x * kTile + word / 4 * 16 + word % 4 * 2 + k % 2 + k / 2 * 8;
      if (row >= values.rows) continue;
      const Row loaded = LoadRow(data + row * values.row_stride, subtracted);
#pragma unroll
      for (int i = 0; i < kLaneChannels; ++i) {
        const float value = loaded.values[i] * inverse[i];
        const int code = __float2int_rn(value);
        residual[i] += __float2int_rn((value - static_cast<float>(code)) * kResidualUnits);
        packed[i] |= static_cast<uint32_t>((code + kCodeOfMean) & 0xff) << 8 * k;
      }
    }
#pragma unroll
    for (int i = 0; i < kLaneChannels; ++i) shared[lane * kLaneChannels + i][word] = packed[i];
  }
#pragma unroll
  for (int i = 0; i < kLaneChannels; ++i) {
    atomicAdd(&shared_residuals[lane * kLaneChannels + i], residual[i]);
  }
  __syncthreads();
  if (threadIdx.x < kHeadDim) {
    atomicAdd(
        &residuals[head * kHeadDim + threadIdx.x],
        static_cast<unsigned long long>(static_cast<long long>(shared_residuals[threadIdx.x])));
  }
  uint32_t* const to = reinterpret_cast<uint32_t*>(codes);
  for (int channel = warp; channel < kHeadDim; channel += kRoundingWarps) {
    to[((head * kHeadDim + channel) * gridDim.x + blockIdx.x) * kWords + lane] =
        shared[channel][lane];
  }
}

// Adds the mean rounding error of each channel's values to the channel's mean.
__global__ void CorrectMeansKernel(const unsigned long long* residuals, const float* scales,
                                   int keys, int channels, float* means) {
  const int channel = blockIdx.x * static_cast<int>(blockDim.x) + threadIdx.x;
  if (channel >= channels) return;
  const auto sum = static_cast<double>(static_cast<long long>(residuals[channel]));
  means[channel] += scales[channel] * static_cast<float>(sum / keys / kResidualUnits);
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

void RoundValuesCuda(const at::Tensor& value, const at::Tensor& averaged,
                     const RoundedValues& out) {
  const c10::cuda::CUDAGuard guard(value.device());
  const auto stream = c10::cuda::getCurrentCUDAStream();
  const dim3 heads(static_cast<unsigned>(value.size(2)), static_cast<unsigned>(value.size(0)));
  float* const means = out.means.mutable_data_ptr<float>();
  MeanKernel<<<heads, 1024, 0, stream>>>(ToHeads(averaged), means);
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  const at::Tensor largest = at::zeros(out.means.sizes(), out.means.options().dtype(at::kInt));
  const auto bits = static_cast<unsigned*>(largest.mutable_data_ptr());
  const dim3 grid = RoundingGrid(value);
  LargestValueKernel<<<grid, kRoundingThreads, 0, stream>>>(ToHeads(value), means, bits);
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  const at::Tensor residuals = at::zeros(out.means.sizes(), out.means.options().dtype(at::kLong));
  const auto sums = static_cast<unsigned long long*>(residuals.mutable_data_ptr());
  float* const scales = out.scales.mutable_data_ptr<float>();
  RoundValuesKernel<<<grid, kRoundingThreads, 0, stream>>>(
      ToHeads(value), means, bits, out.codes.mutable_data_ptr<uint8_t>(), scales, sums);
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  const auto channels = static_cast<int>(out.means.numel());
  CorrectMeansKernel<<<(channels + kRoundingThreads - 1) / kRoundingThreads, kRoundingThreads, 0,
                       stream>>>(sums, scales, static_cast<int>(value.size(1)), channels, means);
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}

const bool kRegistered =
    (GetCudaOps().round_queries = &RoundQueriesCuda, GetCudaOps().round_keys = &RoundKeysCuda,
     GetCudaOps().round_values = &RoundValuesCuda, true);

}  // namespace
}  // namespace wan
