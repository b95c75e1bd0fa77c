// ChannelRmsNormSilu (channel_rms_norm.h) in one pass over memory, for pixels whose channels lie
// together. A pixel has too few channels for a block: one warp holds it in registers.
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include <cstdint>

#include "engine/ops/row_kernel.cuh"
#include "engine/ops/vae_cuda_ops.h"

namespace wan {
namespace {

constexpr int kWarpsPerBlock = 8;
constexpr int kMaxVectorsPerLane = 4;
constexpr float kSmallestLength = 1e-12f;

template <typename T, int kVectors>
__global__ void __launch_bounds__(kWarp* kWarpsPerBlock)
    NormSiluKernel(const T* __restrict__ x, const T* __restrict__ gamma, T* __restrict__ out,
                   int64_t pixels, int channels, float root_of_channels) {
  const int64_t pixel = static_cast<int64_t>(blockIdx.x) * kWarpsPerBlock + threadIdx.y;
  if (pixel >= pixels) return;  // a whole warp at a time
  x += pixel * channels;
  out += pixel * channels;

  Vector values[kVectors];
  float squares = 0;
#pragma unroll
  for (int v = 0; v < kVectors; ++v) {
    const int channel = (v * kWarp + threadIdx.x) * kVector;
    if (channel >= channels) continue;
    values[v] = LoadVector(x + channel);
#pragma unroll
    for (int i = 0; i < kVector; ++i) squares += values[v].values[i] * values[v].values[i];
  }
#pragma unroll
  for (int distance = kWarp / 2; distance > 0; distance /= 2) {
    squares += __shfl_xor_sync(0xffffffffu, squares, distance);
  }
  const float scale = root_of_channels / fmaxf(sqrtf(squares), kSmallestLength);

#pragma unroll
  for (int v = 0; v < kVectors; ++v) {
    const int channel = (v * kWarp + threadIdx.x) * kVector;
    if (channel >= channels) continue;
    const Vector weight = LoadVector(gamma + channel);
    Vector result;
#pragma unroll
    for (int i = 0; i < kVector; ++i) {
      const float y = values[v].values[i] * scale * weight.values[i];
      result.values[i] = y / (1.0f + expf(-y));
    }
    StoreVector(out + channel, result);
  }
}

template <typename T, int kVectors = 1>
void Launch(const at::Tensor& x, const at::Tensor& gamma, const at::Tensor& out) {
  const int64_t channels = x.size(1);
  if constexpr (kVectors < kMaxVectorsPerLane) {
    if (channels > kVectors * kWarp * kVector) return Launch<T, kVectors + 1>(x, gamma, out);
  }
  const int64_t pixels = x.numel() / channels;
  const int64_t blocks = (pixels + kWarpsPerBlock - 1) / kWarpsPerBlock;
  NormSiluKernel<T, kVectors><<<static_cast<unsigned>(blocks), dim3(kWarp, kWarpsPerBlock), 0,
                                c10::cuda::getCurrentCUDAStream()>>>(
      static_cast<const T*>(x.const_data_ptr()), static_cast<const T*>(gamma.const_data_ptr()),
      static_cast<T*>(out.mutable_data_ptr()), pixels, static_cast<int>(channels),
      sqrtf(static_cast<float>(channels)));
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}

bool StartsAtVector(const at::Tensor& x) {
  return reinterpret_cast<uintptr_t>(x.const_data_ptr()) % 16 == 0;
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
  return StartsAtVector(x);
}

bool ChannelRmsNormSiluCuda(const at::Tensor& x, const at::Tensor& gamma, const at::Tensor& out) {
  const at::ScalarType dtype = x.scalar_type();
  if (dtype != at::kFloat && dtype != at::kBFloat16) return false;
  if (gamma.scalar_type() != dtype || out.scalar_type() != dtype) return false;
  if (!gamma.is_contiguous() || !StartsAtVector(gamma)) return false;
  if (out.sizes() != x.sizes() || !IsPixelRows(x) || !IsPixelRows(out)) return false;
  const int64_t channels = x.size(1);
  if (channels % kVector != 0 || channels > kMaxVectorsPerLane * kWarp * kVector) return false;
  if (x.numel() == 0) return true;

  const c10::cuda::CUDAGuard guard(x.device());
  if (dtype == at::kFloat) {
    Launch<float>(x, gamma, out);
  } else {
    Launch<__nv_bfloat16>(x, gamma, out);
  }
  return true;
}

const bool kRegistered = (GetVaeCudaOps().channel_rms_norm_silu = &ChannelRmsNormSiluCuda, true);

}  // namespace
}  // namespace wan
