// A convolution over frames, rows and columns that looks back in time only and takes one chunk of
// frames after another.
//
// The chunks give exactly the result of the whole video: the last frames of a chunk's input stay in
// a history, which precedes the frames of the next chunk. Zeros precede the first chunk. The
// operator before the convolution writes its result directly into the window that the convolution
// reads, so no frame is copied only to be placed behind the history:
//
//   at::Tensor window = conv.OpenWindow(history, frames, height, width);
//   ChannelRmsNormSilu(x, gamma, conv.NewFrames(window));
//   at::Tensor y = conv.Run(std::move(window), history);
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "engine/ops/convolution.h"

namespace wan {

class CausalConv3d {
 public:
  // `weight` is [out, in, kt, kh, kw] with kh and kw odd, `bias` [out]. Rows and columns keep their
  // number; frames are taken every `time_stride`, at most kt. `allow_tf32` as in Convolution.
  CausalConv3d(const at::Tensor& weight, at::Tensor bias, int64_t time_stride, bool allow_tf32);

  // The number of earlier frames that the convolution reads: kt - time_stride.
  int64_t history_frames() const { return history_frames_; }

  // Returns a buffer [1, in, history_frames + frames, height, width] that begins with `history`, or
  // with zeros if `history` is undefined. The caller writes the rest.
  at::Tensor OpenWindow(const at::Tensor& history, int64_t frames, int64_t height,
                        int64_t width) const;

  // Returns the part of a window that the caller writes, a view [1, in, frames, height, width].
  at::Tensor NewFrames(const at::Tensor& window) const;

  // Returns [1, out, frames / time_stride, height, width]. Moves `history` on to the end of the
  // window and releases the window.
  at::Tensor Run(at::Tensor window, at::Tensor& history) const;

  // Does all of this for an input x [1, in, frames, height, width] that exists already.
  at::Tensor operator()(const at::Tensor& x, at::Tensor& history) const;

  // Moves `history` on to the end of x (at least history_frames frames) without convolving.
  void Remember(const at::Tensor& x, at::Tensor& history) const;

 private:
  Convolution convolution_;
  int64_t history_frames_;
};

}  // namespace wan
