// A convolution fused with its neighbours in the autoencoders. The convolution's input may be in
// several pieces. Bias and an addend are added before the only rounding. The result may be spread
// over neighbouring frames or pixels. Without the Hopper kernel, joining the pieces, adding and
// spreading would each be a pass over memory.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace wan {

// The meaning of the channels of a result.
enum class Spread {
  // The channels of one pixel.
  kNone,
  // Two frames: for i = 0 and 1, channels from i * C to (i + 1) * C - 1 belong to result frame
  // 2 t + i.
  kFrames,
  // A cell of 2 x 2 pixels: for i = 0 to 3, channels from i * C to (i + 1) * C - 1 belong to row i
  // / 2 and column i % 2 of the cell. The kernel is 2 x 2. For row r and column c of the cell, the
  // kernel reads the input starting at row y - 1 + r and column x - 1 + c.
  kPixels,
};

// Tensors of five dimensions are dense in ConvolutionLayout. All have one dtype, except that a
// 3x3x3 kernel and its input may be fp16 while bias, addend and result are fp32.
struct FusedConvolution {
  // The kernel's weights, [out, in, kt, kh, kw]. Zero padding keeps height and width unchanged.
  at::Tensor weight;
  at::Tensor bias;  // [C], where C is `out` divided by the number of frames or pixels that the
                    // result is spread over
  // The input [1, in, n, H, W], split into one to three runs of frames.
  std::vector<at::Tensor> frames;
  // The number of zero frames that precede the input.
  int64_t leading_zeros = 0;
  Spread spread = Spread::kNone;
  // If defined, it is added to the result. The addend has the result's shape and may be the result
  // itself. With Spread::kPixels the addend is instead the input of AddDuplicateUp3d
  // (duplicate_up_3d.h), with the time factor `addend_time_factor`.
  at::Tensor addend;
  int64_t addend_time_factor = 1;
};

// HasFusedConvolution requires that the channels of an input pixel fill a multiple of this many
// bytes.
inline constexpr int64_t kFusedChannelBytes = 64;

// Returns whether ConvolveFused has a kernel for weights of this dtype, shape and device;
// `allow_tf32` as in Convolution. If the function returns false, use ordinary convolutions: they
// are faster than the reference.
bool HasFusedConvolution(const at::Tensor& weight, Spread spread, bool allow_tf32);

// Returns whether Spread::kPixels supports an addend with this many channels.
inline constexpr bool CanAddDuplicate(int64_t addend_channels, int64_t out_channels) {
  return addend_channels == out_channels || addend_channels == 2 * out_channels;
}

// Returns whether the device has fused kernels at all.
bool HasFusedConvolutions(at::Device device);

// Writes the convolution to `out`, which is dense in ConvolutionLayout: [1, C, T, H, W] where T =
// leading zeros + frames - kt + 1 (twice as many for Spread::kFrames), or [1, C, T, 2 H, 2 W] for
// Spread::kPixels. Throws c10::Error if HasFusedConvolution is false for the weight.
void ConvolveFused(const FusedConvolution& convolution, at::Tensor& out);

// An implementation in plain ATen in the tensors' own dtype, for tests.
at::Tensor ConvolveFusedReference(const FusedConvolution& convolution);

// Returns the kernel [4 C, in, 1, 2, 2] for Spread::kPixels that equals `weight` [C, in, 3, 3]
// applied after nearest-neighbour upsampling: rows or columns of `weight` that meet the same pixel
// are summed in fp32.
at::Tensor KernelOverEnlargement(const at::Tensor& weight);

}  // namespace wan
