// A convolution fused with its neighbours in the autoencoders: the input may be in several pieces,
// bias and an addend are added before the only rounding, and the result may be spread over
// neighbouring frames or pixels. Without the Hopper kernel, each of these is a pass over memory.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace wan {

// What the channels of a result are.
enum class Spread {
  // Ordinary channels.
  kNone,
  // Two frames: channels i * C ... (i + 1) * C - 1 are result frame 2 t + i.
  kFrames,
  // A cell of 2 x 2 pixels: channels i * C ... (i + 1) * C - 1 are its row i / 2 and column i % 2.
  // The kernel is 2 x 2; for row r and column c of the cell it reads the input from row y - 1 + r
  // and column x - 1 + c on.
  kPixels,
};

// Tensors of five dimensions are dense in ConvolutionLayout. All have one dtype, except that a
// 3x3x3 kernel and its input may be fp16 while bias, addend and result are fp32.
struct FusedConvolution {
  // [out, in, kt, kh, kw]. Zero padding keeps height and width.
  at::Tensor weight;
  at::Tensor bias;  // [C], where C is out divided by the number of spread frames or pixels
  // The input [1, in, n, H, W], split into one to three runs of frames.
  std::vector<at::Tensor> frames;
  // Number of zero frames before the input.
  int64_t leading_zeros = 0;
  Spread spread = Spread::kNone;
  // Added to the result if defined. Has the result's shape and may be the result itself; with
  // Spread::kPixels it is instead the input of AddDuplicateUp3d (duplicate_up_3d.h) with this time
  // factor.
  at::Tensor addend;
  int64_t addend_time_factor = 1;
};

// HasFusedConvolution requires that an input pixel's channels fill a multiple of this many bytes.
inline constexpr int64_t kFusedChannelBytes = 64;

// Returns whether ConvolveFused has a kernel for weights of this dtype, shape and device;
// `allow_tf32` as in Convolution. Otherwise use ordinary convolutions, which are faster than the
// reference.
bool HasFusedConvolution(const at::Tensor& weight, Spread spread, bool allow_tf32);

// Returns whether Spread::kPixels supports an addend with this many channels.
inline constexpr bool CanAddDuplicate(int64_t addend_channels, int64_t out_channels) {
  return addend_channels == out_channels || addend_channels == 2 * out_channels;
}

// Returns whether the device has any fused kernel.
bool HasFusedConvolutions(at::Device device);

// Writes the convolution to `out`, which is dense in ConvolutionLayout: [1, C, T, H, W] where T =
// leading zeros + frames - kt + 1 (twice as many for Spread::kFrames), or [1, C, T, 2 H, 2 W] for
// Spread::kPixels. Throws c10::Error if HasFusedConvolution is false for the weight.
void ConvolveFused(const FusedConvolution& convolution, at::Tensor& out);

// A plain ATen version in the tensors' own dtype, for tests.
at::Tensor ConvolveFusedReference(const FusedConvolution& convolution);

// Returns the kernel [4 C, in, 1, 2, 2] for Spread::kPixels that equals `weight` [C, in, 3, 3]
// applied after nearest-neighbour upsampling: rows or columns of `weight` that meet the same pixel
// are summed in fp32.
at::Tensor KernelOverEnlargement(const at::Tensor& weight);

}  // namespace wan
