// ChannelRmsNormSilu (channel_rms_norm.h) in one pass over memory, for channels-last tensors. A
// pixel has too few channels to occupy a block, so a part of a warp holds one pixel in registers.
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include <cstdint>

#include "engine/ops/row_kernel.cuh"
#include "engine/ops/vae_cuda_ops.h"

namespace wan {
namespace {

constexpr int kThreads = 256;
constexpr int kMaxVectorsPerLane = 4;
constexpr float kSmallestLength = 1e-12f;

__device__ __forceinline__ float Silu(float y, float) { return y / (1.0f + expf(-y)); }
// The fast intrinsics are exact enough, because results are rounded to at most 11 bits.
template <typename T>
__device__ __forceinline__ float Silu(float y, T) {
  return __fdividef(y, 1.0f + __expf(-y));
}

// Each pixel is shared by kLanes neighbouring lanes of a warp.
template <typename T, typename Out, int kLanes, int kVectors>
__global__ void __launch_bounds__(kThreads)
    NormSiluKernel(const T* __restrict__ x, const T* __restrict__ gamma, Out* __restrict__ out,
                   int64_t pixels, int channels, float root_of_channels) {
  constexpr int kPixels = kThreads / kLanes;
  const int lane = threadIdx.x % kLanes;
  const int64_t pixel = static_cast<int64_t>(blockIdx.x) * kPixels + threadIdx.x / kLanes;
  const bool inside = pixel < pixels;
  x += pixel * channels;
  out += pixel * channels;

  Vector values[kVectors];
  float squares = 0;
#pragma unroll
  for (int v = 0; v < kVectors; ++v) {
    const int channel = (v * kLanes + lane) * kVector;
    if (!inside || channel >= channels) continue;
    values[v] = LoadVector(x + channel);
#pragma unroll
    for (int i = 0; i < kVector; ++i) squares += values[v].values[i] * values[v].values[i];
  }
#pragma unroll
  for (int distance = kLanes / 2; distance > 0; distance /= 2) {
    squares += __shfl_xor_sync(0xffffffffu, squares, distance);
  }
  const float scale = root_of_channels / fmaxf(sqrtf(squares), kSmallestLength);

#pragma unroll
  for (int v = 0; v < kVectors; ++v) {
    const int channel = (v * kLanes + lane) * kVector;
    if (!inside || channel >= channels) continue;
    const Vector weight = LoadVector(gamma + channel);
    Vector result;
#pragma unroll
    for (int i = 0; i < kVector; ++i) {
      result.values[i] = Silu(values[v].values[i] * scale * weight.values[i], Out{});
    }
    StoreVector(out + channel, result);
  }
}

template <typename T, typename Out, int kLanes, int kVectors>
void LaunchWith(const at::Tensor& x, const at::Tensor& gamma, const at::Tensor& out) {
  constexpr int kPixels = kThreads / kLanes;
  const int64_t channels = x.size(1);
  const int64_t pixels = x.numel() / channels;
  const int64_t blocks = (pixels + kPixels - 1) / kPixels;
  NormSiluKernel<T, Out, kLanes, kVectors>
      <<<static_cast<unsigned>(blocks), kThreads, 0, c10::cuda::getCurrentCUDAStream()>>>(
          static_cast<const T*>(x.const_data_ptr()), static_cast<const T*>(gamma.const_data_ptr()),
          static_cast<Out*>(out.mutable_data_ptr()), pixels, static_cast<int>(channels),
          sqrtf(static_cast<float>(channels)));
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}

template <typename T, typename Out, int kLanes>
void LaunchLanes(const at::Tensor& x, const at::Tensor& gamma, const at::Tensor& out,
                 int64_t vectors) {
  switch (vectors) {
    case 1:
      return LaunchWith<T, Out, kLanes, 1>(x, gamma, out);
    case 2:
      return LaunchWith<T, Out, kLanes, 2>(x, gamma, out);
    case 3:
      return LaunchWith<T, Out, kLanes, 3>(x, gamma, out);
    default:
      return LaunchWith<T, Out, kLanes, 4>(x, gamma, out);
  }
}

// Picks the number of lanes per pixel: first as few idle lanes as possible, then as few lanes as
// possible.
template <typename T, typename Out = T>
void Launch(const at::Tensor& x, const at::Tensor& gamma, const at::Tensor& out) {
  const int64_t all = x.size(1) / kVector;
  int64_t lanes = kWarp;
  int64_t vectors = (all + lanes - 1) / lanes;
  for (int64_t fewer = kWarp / 2; fewer >= 4; fewer /= 2) {
    const int64_t each = (all + fewer - 1) / fewer;
    if (each > kMaxVectorsPerLane || each * fewer > vectors * lanes) break;
    lanes = fewer;
    vectors = each;
  }
  switch (lanes) {
    case 4:
      return LaunchLanes<T, Out, 4>(x, gamma, out, vectors);
    case 8:
      return LaunchLanes<T, Out, 8>(x, gamma, out, vectors);
    case 16:
      return LaunchLanes<T, Out, 16>(x, gamma, out, vectors);
    default:
      return LaunchLanes<T, Out, kWarp>(x, gamma, out, vectors);
  }
}

bool StartsAtVector(const at::Tensor& x) {
  return reinterpret_cast<uintptr_t>(x.const_data_ptr()) % 16 == 0;
}

// Returns whether x consists of consecutive pixels with channels innermost: a tensor [1, C, T, H,
// W] in channels-last order, or consecutive frames of such a tensor.
bool IsPixelRows(const at::Tensor& x) {
  if (x.dim() != 5 || x.size(0) != 1 || x.stride(1) != 1) return false;
  int64_t expected = x.size(1);
  for (const int64_t dim : {4, 3, 2}) {
    if (x.size(dim) != 1 && x.stride(dim) != expected) return false;
    expected *= x.size(dim);
  }
  return StartsAtVector(x);
}

bool ChannelRmsNormSiluCuda(const at::Tensor& x, const at::Tensor& gamma, const at::Tensor& out) {
  const at::ScalarType dtype = x.scalar_type();
  if (dtype != at::kFloat && dtype != at::kBFloat16 && dtype != at::kHalf) return false;
  const bool narrows = dtype == at::kFloat && out.scalar_type() == at::kHalf;
  if (gamma.scalar_type() != dtype || (out.scalar_type() != dtype && !narrows)) return false;
  if (!gamma.is_contiguous() || !StartsAtVector(gamma)) return false;
  if (out.sizes() != x.sizes() || !IsPixelRows(x) || !IsPixelRows(out)) return false;
  const int64_t channels = x.size(1);
  if (channels % kVector != 0 || channels > kMaxVectorsPerLane * kWarp * kVector) return false;
  if (x.numel() == 0) return true;

  const c10::cuda::CUDAGuard guard(x.device());
  if (narrows) {
    Launch<float, __half>(x, gamma, out);
  } else if (dtype == at::kFloat) {
    Launch<float>(x, gamma, out);
  } else if (dtype == at::kHalf) {
    Launch<__half>(x, gamma, out);
  } else {
    Launch<__nv_bfloat16>(x, gamma, out);
  }
  return true;
}

const bool kRegistered = (GetVaeCudaOps().channel_rms_norm_silu = &ChannelRmsNormSiluCuda, true);

}  // namespace
}  // namespace wan
