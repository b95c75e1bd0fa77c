// ChannelRmsNormSilu (channel_rms_norm.h) in one pass over memory, for pixels whose channels lie
// together. One warp holds one pixel in registers.
#include <c10/core/ScalarType.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <c10/util/BFloat16.h>
#include <cuda_bf16.h>

#include <cstdint>

#include "engine/ops/vae_cuda_ops.h"

namespace wan {
namespace {

constexpr int kWarp = 32;
constexpr int kWarpsPerBlock = 8;
constexpr int kMaxVectorsPerLane = 8;
constexpr float kSmallestLength = 1e-12f;

// 16 bytes of channels.
template <typename T>
struct Vector;

template <>
struct Vector<float> {
  static constexpr int kSize = 4;
  static __device__ void Load(const float* from, float (&to)[kSize]) {
    const float4 packed = *reinterpret_cast<const float4*>(from);
    to[0] = packed.x;
    to[1] = packed.y;
    to[2] = packed.z;
    to[3] = packed.w;
  }
  static __device__ void Store(const float (&from)[kSize], float* to) {
    *reinterpret_cast<float4*>(to) = make_float4(from[0], from[1], from[2], from[3]);
  }
};

template <>
struct Vector<__nv_bfloat16> {
  static constexpr int kSize = 8;
  static __device__ void Load(const __nv_bfloat16* from, float (&to)[kSize]) {
    const uint4 packed = *reinterpret_cast<const uint4*>(from);
    const auto* pairs = reinterpret_cast<const __nv_bfloat162*>(&packed);
#pragma unroll
    for (int i = 0; i < kSize / 2; ++i) {
      const float2 pair = __bfloat1622float2(pairs[i]);
      to[2 * i] = pair.x;
      to[2 * i + 1] = pair.y;
    }
  }
  static __device__ void Store(const float (&from)[kSize], __nv_bfloat16* to) {
    uint4 packed;
    auto* pairs = reinterpret_cast<__nv_bfloat162*>(&packed);
#pragma unroll
    for (int i = 0; i < kSize / 2; ++i) {
      pairs[i] = __floats2bfloat162_rn(from[2 * i], from[2 * i + 1]);
    }
    *reinterpret_cast<uint4*>(to) = packed;
  }
};

template <typename T, int kVectors>
__global__ void __launch_bounds__(kWarp* kWarpsPerBlock)
    NormSiluKernel(const T* __restrict__ x, const T* __restrict__ gamma, T* __restrict__ out,
                   int64_t pixels, int channels, float root_of_channels) {
  constexpr int kSize = Vector<T>::kSize;
  const int64_t pixel = static_cast<int64_t>(blockIdx.x) * kWarpsPerBlock + threadIdx.y;
  if (pixel >= pixels) return;  // a whole warp at a time
  x += pixel * channels;
  out += pixel * channels;

  float values[kVectors][kSize];
  float sum = 0;
#pragma unroll
  for (int v = 0; v < kVectors; ++v) {
    const int channel = (v * kWarp + threadIdx.x) * kSize;
    if (channel >= channels) continue;
    Vector<T>::Load(x + channel, values[v]);
#pragma unroll
    for (int i = 0; i < kSize; ++i) sum += values[v][i] * values[v][i];
  }
#pragma unroll
  for (int offset = kWarp / 2; offset > 0; offset /= 2) {
    sum += __shfl_xor_sync(0xffffffffu, sum, offset);
  }
  const float scale = root_of_channels / fmaxf(sqrtf(sum), kSmallestLength);

#pragma unroll
  for (int v = 0; v < kVectors; ++v) {
    const int channel = (v * kWarp + threadIdx.x) * kSize;
    if (channel >= channels) continue;
    float weights[kSize];
    Vector<T>::Load(gamma + channel, weights);
#pragma unroll
    for (int i = 0; i < kSize; ++i) {
      const float y = values[v][i] * scale * weights[i];
      values[v][i] = y / (1.0f + expf(-y));
    }
    Vector<T>::Store(values[v], out + channel);
  }
}

template <typename T, int kVectors = 1>
void Launch(const at::Tensor& x, const at::Tensor& gamma, const at::Tensor& out, int channels) {
  if constexpr (kVectors < kMaxVectorsPerLane) {
    if (channels > kVectors * kWarp * Vector<T>::kSize) {
      return Launch<T, kVectors + 1>(x, gamma, out, channels);
    }
  }
  const int64_t pixels = x.numel() / channels;
  const int64_t blocks = (pixels + kWarpsPerBlock - 1) / kWarpsPerBlock;
  NormSiluKernel<T, kVectors><<<static_cast<unsigned>(blocks), dim3(kWarp, kWarpsPerBlock), 0,
                                c10::cuda::getCurrentCUDAStream()>>>(
      static_cast<const T*>(x.const_data_ptr()), static_cast<const T*>(gamma.const_data_ptr()),
      static_cast<T*>(out.mutable_data_ptr()), pixels, channels,
      sqrtf(static_cast<float>(channels)));
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}

// Pixels one behind the other, each with its channels together: [1, C, T, H, W] in channels-last
// order, or a run of frames of such a tensor.
bool IsPixelRows(const at::Tensor& x) {
  if (x.dim() != 5 || x.size(0) != 1 || x.stride(1) != 1) return false;
  int64_t expected = x.size(1);
  for (const int64_t dim : {4, 3, 2}) {
    if (x.size(dim) != 1 && x.stride(dim) != expected) return false;
    expected *= x.size(dim);
  }
  return reinterpret_cast<uintptr_t>(x.const_data_ptr()) % 16 == 0;
}

bool ChannelRmsNormSiluCuda(const at::Tensor& x, const at::Tensor& gamma, const at::Tensor& out) {
  const at::ScalarType dtype = x.scalar_type();
  if (dtype != at::kFloat && dtype != at::kBFloat16) return false;
  const int64_t channels = x.size(1);
  const int64_t vector = 16 / x.element_size();
  const bool fits = channels % vector == 0 && channels <= kMaxVectorsPerLane * kWarp * vector;
  const bool same = gamma.scalar_type() == dtype && out.scalar_type() == dtype &&
                    out.sizes() == x.sizes() && gamma.is_contiguous();
  if (!fits || !same || x.numel() == 0 || !IsPixelRows(x) || !IsPixelRows(out)) return false;
  if (reinterpret_cast<uintptr_t>(gamma.const_data_ptr()) % 16 != 0) return false;

  const c10::cuda::CUDAGuard device(x.device());
  if (dtype == at::kFloat) {
    Launch<float>(x, gamma, out, static_cast<int>(channels));
  } else {
    Launch<__nv_bfloat16>(x, gamma, out, static_cast<int>(channels));
  }
  return true;
}

[[maybe_unused]] const bool registered = [] {
  GetVaeCudaOps().channel_rms_norm_silu = &ChannelRmsNormSiluCuda;
  return true;
}();

}  // namespace
}  // namespace wan
