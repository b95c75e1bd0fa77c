// Convolutions in two or three dimensions. Library and precision are chosen explicitly, and not by
// LibTorch's rules of thumb and process-wide switches.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace wan {

// The order in memory of kernels and of activations with `dim` dimensions (4 or 5), on every
// device: channels innermost. The fast kernels of cuDNN and oneDNN want it and transpose what comes
// otherwise; with one video at a time it makes frames outermost, so that a run of frames is one
// piece of memory and a batch of images at once.
inline constexpr at::MemoryFormat ConvolutionLayout(int64_t dim) {
  return dim == 4 ? at::MemoryFormat::ChannelsLast : at::MemoryFormat::ChannelsLast3d;
}

// x [N, in, ...] -> [N, out, ...], with a symmetric zero border of `padding`. Keeps x's layout.
class Convolution {
 public:
  // cuDNN reliably addresses this many elements of an input or output. LibTorch's own guard against
  // more is not on the path that we call.
  static constexpr int64_t kMaxElements = (int64_t{1} << 31) - 1;

  // `weight` is [out, in, k...] with 2 or 3 kernel dimensions, `bias` [out]; `stride` and `padding`
  // have one entry for each kernel dimension. `allow_tf32`: on CUDA, the products of fp32 may round
  // their inputs to TF32.
  Convolution(const at::Tensor& weight, at::Tensor bias, std::vector<int64_t> stride,
              std::vector<int64_t> padding, bool allow_tf32);

  // On CUDA an input or output of more than kMaxElements is convolved in pieces.
  at::Tensor operator()(const at::Tensor& x) const;

  // The same result from pieces of the output that have, as their part of the input, at most
  // `max_elements`: runs of frames (of images for 2 dimensions), and where a single one is too
  // large, runs of its rows. A run of rows is copied with the rows around it, which takes memory.
  // For tests, and for operator(). Throws c10::Error where a single row is too large.
  at::Tensor InPieces(const at::Tensor& x, int64_t max_elements) const;

  // y += the convolution of x. y is dense in ConvolutionLayout.
  void AddTo(const at::Tensor& x, at::Tensor& y) const;

  const at::Tensor& weight() const { return weight_; }
  const at::Tensor& bias() const { return bias_; }

 private:
  at::Tensor Whole(const at::Tensor& x) const;
  // y := the result of Whole. y is dense in ConvolutionLayout.
  void WholeInto(const at::Tensor& x, at::Tensor& y) const;
  // y := the convolution of x, in runs of rows.
  void InRows(const at::Tensor& x, int64_t max_elements, at::Tensor& y) const;
  std::vector<int64_t> OutputSizes(const at::Tensor& x) const;

  at::Tensor weight_;
  at::Tensor bias_;
  at::Tensor bias_over_pixels_;  // bias_ as [out, 1, ...], to be added to an output
  std::vector<int64_t> stride_;
  std::vector<int64_t> padding_;
  std::vector<int64_t> dilation_;  // ones
  bool allow_tf32_;
  bool fused_;  // whether fused_convolution.h has a kernel for AddTo
};

}  // namespace wan
