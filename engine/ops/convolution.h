// Convolutions in two or three dimensions. The caller chooses library and precision explicitly;
// LibTorch's heuristics and global switches do not apply.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace wan {

// The memory format, on every device, of kernels and activations with `dim` dimensions (4 or 5):
// channels are innermost. The fast kernels of cuDNN and oneDNN need this format; they transpose
// tensors in any other format. With a batch of one, frames are outermost, so consecutive frames are
// contiguous and form a batch of images.
inline constexpr at::MemoryFormat ConvolutionLayout(int64_t dim) {
  return dim == 4 ? at::MemoryFormat::ChannelsLast : at::MemoryFormat::ChannelsLast3d;
}

// Maps x [N, in, ...] to [N, out, ...], with `padding` zeros on both sides. The result has the
// layout of x.
class Convolution {
 public:
  // cuDNN is reliable for inputs and outputs of at most this many elements. Our direct call of
  // cuDNN bypasses LibTorch's own check of this limit.
  static constexpr int64_t kMaxElements = (int64_t{1} << 31) - 1;

  // `weight` is [out, in, k...] with 2 or 3 kernel dimensions, `bias` is [out]. `stride` and
  // `padding` have one entry for each kernel dimension. `allow_tf32`: on CUDA, the fp32 inputs of
  // products may be rounded to TF32.
  Convolution(const at::Tensor& weight, at::Tensor bias, std::vector<int64_t> stride,
              std::vector<int64_t> padding, bool allow_tf32);

  // On CUDA, a convolution whose input or output has more than kMaxElements elements runs in
  // pieces.
  at::Tensor operator()(const at::Tensor& x) const;

  // Computes the same as operator() in pieces that read at most `max_elements` of the input:
  // consecutive frames (images in 2D), or rows if one frame is too large. A piece of rows is copied
  // together with the rows around it, which takes memory. Only tests and operator() call InPieces.
  // Throws c10::Error if a single row is too large.
  at::Tensor InPieces(const at::Tensor& x, int64_t max_elements) const;

  // Computes y += convolution(x); y is dense in ConvolutionLayout.
  void AddTo(const at::Tensor& x, at::Tensor& y) const;

  const at::Tensor& weight() const { return weight_; }
  const at::Tensor& bias() const { return bias_; }

 private:
  at::Tensor Whole(const at::Tensor& x) const;
  // Writes the result of Whole to y, which is dense in ConvolutionLayout.
  void WholeInto(const at::Tensor& x, at::Tensor& y) const;
  // Writes convolution(x) to y, several rows at a time.
  void InRows(const at::Tensor& x, int64_t max_elements, at::Tensor& y) const;
  std::vector<int64_t> OutputSizes(const at::Tensor& x) const;

  at::Tensor weight_;
  at::Tensor bias_;
  at::Tensor bias_over_pixels_;  // bias_ as [out, 1, ...], which can be added to an output
  std::vector<int64_t> stride_;
  std::vector<int64_t> padding_;
  std::vector<int64_t> dilation_;  // dilation of each dimension, always 1
  bool allow_tf32_;
  bool fused_;  // whether AddTo can use a fused kernel (fused_convolution.h)
};

}  // namespace wan
