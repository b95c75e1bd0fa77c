// A convolution together with what stands around it in the autoencoders: its input comes in several
// pieces, its bias and an addend are added before the only rounding, and its result may be spread
// over neighbouring frames or pixels. Without the kernel for Hopper GPUs each of these steps is a
// pass over memory.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace wan {

// The meaning of a result's channels.
enum class Spread {
  // Channels.
  kNone,
  // Two frames: channels i * C ... (i + 1) * C - 1 are frame 2 t + i.
  kFrames,
  // A cell of two rows and two columns: channels i * C ... (i + 1) * C - 1 are row i / 2 and column
  // i % 2 of the cell. The kernel has two rows and columns, and those of cell row r and cell column
  // c read the input from row y - 1 + r and column x - 1 + c on.
  kPixels,
};

// Every tensor of five dimensions is dense in ConvolutionLayout. All are of one dtype, but a kernel
// of 3x3x3 and its input may be fp16 where bias, addend and result are fp32.
struct FusedConvolution {
  // [out, in, kt, kh, kw]. Rows and columns keep their number: zeros stand around the input.
  at::Tensor weight;
  at::Tensor bias;  // [out without what is spread]
  // The input [1, in, n, H, W] in one to three runs of frames.
  std::vector<at::Tensor> frames;
  // Frames of zeros before the input.
  int64_t leading_zeros = 0;
  Spread spread = Spread::kNone;
  // Undefined, or added to the result: of the result's shape, which may be the result itself; with
  // Spread::kPixels the input of AddDuplicateUp3d (duplicate_up_3d.h) with this factor of time.
  at::Tensor addend;
  int64_t addend_time_factor = 1;
};

// The channels of an input fill whole chunks of this many bytes where HasFusedConvolution is true.
inline constexpr int64_t kFusedChannelBytes = 64;

// Returns whether ConvolveFused runs as one kernel for kernels of this dtype, shape and place;
// `allow_tf32` as in Convolution. If not, use ordinary convolutions, which are faster than the
// reference.
bool HasFusedConvolution(const at::Tensor& weight, Spread spread, bool allow_tf32);

// Returns whether an addend with this many channels can be added with Spread::kPixels.
inline constexpr bool CanAddDuplicate(int64_t addend_channels, int64_t out_channels) {
  return addend_channels == out_channels || addend_channels == 2 * out_channels;
}

// Returns whether the device has the kernel at all.
bool HasFusedConvolutions(at::Device device);

// Writes the convolution to `out`, dense in ConvolutionLayout: [1, C, T, H, W] where
// T = leading zeros + frames - kt + 1, twice as many for Spread::kFrames; [1, C, T, 2 H, 2 W] for
// Spread::kPixels. Throws c10::Error if HasFusedConvolution is false for the kernel.
void ConvolveFused(const FusedConvolution& convolution, at::Tensor& out);

// Computes the same in plain ATen in the tensors' own dtype, for tests.
at::Tensor ConvolveFusedReference(const FusedConvolution& convolution);

// The kernel [4 C, in, 1, 2, 2] whose convolution with Spread::kPixels is that of `weight`
// [C, in, 3, 3] over the nearest-neighbour enlargement of the input: the two rows or columns of
// `weight` that meet the same pixel are added up, in fp32.
at::Tensor KernelOverEnlargement(const at::Tensor& weight);

}  // namespace wan
