// ConvolveFused (fused_convolution.h) for compute capability 9.0 in bf16, fp16 and TF32. The kernel
// computes a matrix product whose rows are pixels; sums are fp32. convolution_sm90.cuh has its
// code.
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <cuda.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "engine/ops/convolution_sm90.cuh"
#include "engine/ops/cuda_ops.h"
#include "engine/ops/tensor_map.h"
#include "engine/ops/vae_cuda_ops.h"

namespace wan {
namespace {

using namespace sm90;

constexpr int kFewChannels = 16;

CUtensorMapDataType MapType(at::ScalarType dtype) {
  if (dtype == at::kBFloat16) return CU_TENSOR_MAP_DATA_TYPE_BFLOAT16;
  if (dtype == at::kHalf) return CU_TENSOR_MAP_DATA_TYPE_FLOAT16;
  // With this type, TMA rounds to TF32 during the copy; with fp32, the tensor cores would truncate.
  return CU_TENSOR_MAP_DATA_TYPE_TFLOAT32;
}

// Makes a TMA descriptor of a dense 4D tensor, fastest dimension first, for boxes whose size is
// kRow bytes by `box`.
bool DescribeTensor(const at::Tensor& tensor, const int64_t (&sizes)[4], const int (&box)[3],
                    CUtensorMap& map) {
  static const EncodeTensorMap encode = FindEncodeTensorMap();
  cuuint64_t map_sizes[4];
  cuuint64_t strides[3];
  auto bytes = static_cast<cuuint64_t>(tensor.element_size());
  for (int i = 0; i < 4; ++i) {
    map_sizes[i] = static_cast<cuuint64_t>(sizes[i]);
    bytes *= map_sizes[i];
    if (i < 3) strides[i] = bytes;
  }
  const cuuint32_t map_box[4] = {static_cast<cuuint32_t>(kRow / tensor.element_size()),
                                 static_cast<cuuint32_t>(box[0]), static_cast<cuuint32_t>(box[1]),
                                 static_cast<cuuint32_t>(box[2])};
  const cuuint32_t ones[4] = {1, 1, 1, 1};
  return encode != nullptr &&
         encode(&map, MapType(tensor.scalar_type()), 4, const_cast<void*>(tensor.const_data_ptr()),
                map_sizes, strides, map_box, ones, CU_TENSOR_MAP_INTERLEAVE_NONE,
                CU_TENSOR_MAP_SWIZZLE_64B, CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
                CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS;
}

// The number of result channels per tile; 0 if no tile size divides `channels`.
int TileChannels(int64_t channels) {
  for (const int tile : {192, 128, 96}) {
    if (channels % tile == 0) return tile;
  }
  return channels <= kFewChannels ? kFewChannels : 0;
}

int64_t Phases(Spread spread) {
  return spread == Spread::kPixels ? 4 : spread == Spread::kFrames ? 2 : 1;
}

bool Supports(const at::Tensor& weight, Spread spread, bool allow_tf32) {
  const at::ScalarType dtype = weight.scalar_type();
  const bool has_products =
      dtype == at::kBFloat16 || dtype == at::kHalf || (dtype == at::kFloat && allow_tf32);
  if (!has_products || weight.dim() != 5 || !weight.is_cuda()) return false;
  const int64_t rows = weight.size(3);
  const int64_t columns = weight.size(4);
  const bool fits_spread = spread == Spread::kPixels ? rows == 2 && columns == 2
                                                     : rows == columns && (rows == 1 || rows == 3);
  const int64_t channels = weight.size(0) / Phases(spread);
  const int tile = TileChannels(channels);
  return fits_spread && weight.size(0) == channels * Phases(spread) && tile > 0 &&
         (tile > kFewChannels || (rows == 3 && spread == Spread::kNone)) &&
         weight.size(1) * weight.element_size() % kRow == 0 &&
         GetCudaOps().compute_capability(weight.get_device()) == 90;
}

bool IsDense(const at::Tensor& x, at::ScalarType dtype) {
  return x.dim() == 5 && x.is_cuda() && x.scalar_type() == dtype && x.size(0) == 1 &&
         x.numel() > 0 && x.is_contiguous(at::MemoryFormat::ChannelsLast3d) &&
         reinterpret_cast<uintptr_t>(x.const_data_ptr()) % 16 == 0;
}

// Fills in the fields of `p` that describe the addend. Returns false if the addend's shape does not
// fit.
bool DescribeAddend(const FusedConvolution& convolution, const at::Tensor& out,
                    ConvolutionProblem& p) {
  const at::Tensor& addend = convolution.addend;
  if (!addend.defined()) return true;
  if (!IsDense(addend, out.scalar_type())) return false;
  p.addend = addend.const_data_ptr();
  if (convolution.spread != Spread::kPixels) return addend.sizes() == out.sizes();
  p.addend_channels = static_cast<int>(addend.size(1));
  p.addend_step = p.addend_channels / p.channels;
  p.addend_time_factor = static_cast<int>(convolution.addend_time_factor);
  p.addend_made = static_cast<int>(out.size(2) / addend.size(2));
  return p.addend_step * p.channels == p.addend_channels && p.addend_step >= 1 &&
         p.addend_step <= 2 && p.addend_made >= 1 && p.addend_made <= p.addend_time_factor &&
         p.addend_made * addend.size(2) == out.size(2) && addend.size(3) == p.height &&
         addend.size(4) == p.width;
}

bool Describe(const FusedConvolution& convolution, const at::Tensor& out, ConvolutionProblem& p) {
  const at::Tensor& weight = convolution.weight;
  const at::Tensor& first = convolution.frames.front();
  const at::ScalarType dtype = weight.scalar_type();
  const at::ScalarType out_dtype = out.scalar_type();
  const bool widens = dtype == at::kHalf && out_dtype == at::kFloat && weight.size(3) == 3 &&
                      convolution.spread == Spread::kNone;
  if (!Supports(weight, convolution.spread, /*allow_tf32=*/true) ||
      (out_dtype != dtype && !widens) || !IsDense(out, out_dtype) ||
      !weight.is_contiguous(at::MemoryFormat::ChannelsLast3d) ||
      convolution.frames.size() > kMostRuns || convolution.bias.scalar_type() != out_dtype ||
      !convolution.bias.is_contiguous()) {
    return false;
  }
  const auto phases = static_cast<int>(Phases(convolution.spread));
  const int64_t in = weight.size(1);
  const int rows = static_cast<int>(weight.size(3));
  p.channels = static_cast<int>(weight.size(0) / phases);
  p.height = static_cast<int>(first.size(3));
  p.width = static_cast<int>(first.size(4));
  int64_t frames = 0;
  for (int i = 0; i < kMostRuns; ++i) {
    if (i < static_cast<int>(convolution.frames.size())) {
      const at::Tensor& run = convolution.frames[i];
      if (!IsDense(run, dtype) || run.size(1) != in || run.size(3) != p.height ||
          run.size(4) != p.width ||
          !DescribeTensor(run, {in, p.width, p.height, run.size(2)},
                          {kPatchColumns, kPatchRows + rows - 1, 1}, p.runs[i])) {
        return false;
      }
      frames += run.size(2);
    }
    p.run_ends[i] = static_cast<int>(frames);
  }
  p.time_spread = convolution.spread == Spread::kFrames ? 2 : 1;
  p.pixel_spread = convolution.spread == Spread::kPixels ? 2 : 1;
  p.leading_zeros = static_cast<int>(convolution.leading_zeros);
  p.kernel_frames = static_cast<int>(weight.size(2));
  p.kernel_columns = static_cast<int>(weight.size(4));
  p.frames = static_cast<int>(frames + convolution.leading_zeros) - p.kernel_frames + 1;
  if (p.frames < 1 ||
      out.sizes() != at::IntArrayRef({1, p.channels, p.frames * p.time_spread,
                                      p.height * p.pixel_spread, p.width * p.pixel_spread})) {
    return false;
  }
  p.pad_rows = rows / 2;
  p.pad_columns = p.kernel_columns / 2;
  p.chunks = static_cast<int>(in * weight.element_size() / kRow);
  const int tile_channels = TileChannels(p.channels);
  p.tiles_of_a_phase = (p.channels + tile_channels - 1) / tile_channels;
  p.channel_tiles = p.tiles_of_a_phase * phases;
  p.row_patches = (p.height + kPatchRows - 1) / kPatchRows;
  p.column_patches = (p.width + kPatchColumns - 1) / kPatchColumns;
  const int64_t patches = int64_t{p.frames} * p.row_patches * p.column_patches;
  const int64_t tiles = (patches + kConvolutionGroups - 1) / kConvolutionGroups * p.channel_tiles;
  if (tiles > std::numeric_limits<int>::max() / 2) return false;
  p.patches = static_cast<int>(patches);
  p.tiles = static_cast<int>(tiles);
  p.bias = convolution.bias.const_data_ptr();
  p.out = out.mutable_data_ptr();
  const int64_t taps = weight.size(2) * weight.size(3) * weight.size(4);
  return DescribeTensor(weight, {in, taps, weight.size(0), 1}, {1, tile_channels, 1}, p.weight) &&
         DescribeAddend(convolution, out, p);
}

template <typename T, typename Out, int kN, int kTaps>
void Launch(const ConvolutionProblem& p, int device) {
  constexpr uint32_t kShared = ConvolutionStage<kN, kTaps>::kShared;
  int processors = 0;
  C10_CUDA_CHECK(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device));
  const auto kernel = &ConvolutionKernel<T, Out, kN, kTaps>;
  C10_CUDA_CHECK(
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kShared));
  kernel<<<std::min(processors, p.tiles), kConvolutionThreads, kShared,
           c10::cuda::getCurrentCUDAStream()>>>(p);
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}

template <typename T, typename Out, int kN>
void LaunchTaps(const ConvolutionProblem& p, int64_t taps, int device) {
  if constexpr (kN == kFewChannels || !std::is_same_v<T, Out>) {
    Launch<T, Out, kN, 3>(p, device);
  } else if (taps == 3) {
    Launch<T, Out, kN, 3>(p, device);
  } else if (taps == 2) {
    Launch<T, Out, kN, 2>(p, device);
  } else {
    Launch<T, Out, kN, 1>(p, device);
  }
}

template <typename T, typename Out>
void LaunchTile(const ConvolutionProblem& p, int64_t taps, int device) {
  switch (TileChannels(p.channels)) {
    case 192:
      return LaunchTaps<T, Out, 192>(p, taps, device);
    case 128:
      return LaunchTaps<T, Out, 128>(p, taps, device);
    case 96:
      return LaunchTaps<T, Out, 96>(p, taps, device);
    default:
      return LaunchTaps<T, Out, kFewChannels>(p, taps, device);
  }
}

bool FusedConvolutionCuda(const FusedConvolution& convolution, at::Tensor& out) {
  ConvolutionProblem p = {};
  if (!Describe(convolution, out, p)) return false;
  const c10::cuda::CUDAGuard guard(out.device());
  const int64_t taps = convolution.weight.size(3);
  const int device = out.get_device();
  const at::ScalarType dtype = convolution.weight.scalar_type();
  if (dtype == at::kBFloat16) {
    LaunchTile<__nv_bfloat16, __nv_bfloat16>(p, taps, device);
  } else if (dtype == at::kFloat) {
    LaunchTile<float, float>(p, taps, device);
  } else if (out.scalar_type() == at::kHalf) {
    LaunchTile<__half, __half>(p, taps, device);
  } else {
    LaunchTile<__half, float>(p, taps, device);
  }
  return true;
}

const bool kRegistered = (GetVaeCudaOps().supports_fused_convolution = &Supports,
                          GetVaeCudaOps().fused_convolution = &FusedConvolutionCuda, true);

}  // namespace
}  // namespace wan
