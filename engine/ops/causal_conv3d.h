// Convolution over frames, rows and columns that looks back in time only, one chunk of frames after
// another.
//
// Chunks give exactly what the whole video would: the last frames of a chunk's input stay in a
// history, which stands before the frames of the next chunk. Before the first chunk stand zeros.
// Whatever makes the input writes it straight into the window that the convolution reads, so that
// no frame is copied only to be put behind the history:
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

  // Frames that are looked back at: kt - time_stride.
  int64_t history_frames() const { return history_frames_; }

  // A buffer [1, in, history_frames + frames, height, width] that begins with `history` (zeros if
  // that is undefined); the rest is for the caller to write.
  at::Tensor OpenWindow(const at::Tensor& history, int64_t frames, int64_t height,
                        int64_t width) const;

  // The part of a window that is to be written, a view [1, in, frames, height, width].
  at::Tensor NewFrames(const at::Tensor& window) const;

  // [1, out, frames / time_stride, height, width]. Moves `history` on to the window's end and lets
  // go of the window.
  at::Tensor Run(at::Tensor window, at::Tensor& history) const;

  // The three above for an input that exists already: x is [1, in, frames, height, width].
  at::Tensor operator()(const at::Tensor& x, at::Tensor& history) const;

  // Moves `history` on to the end of x (at least history_frames frames) without convolving.
  void Remember(const at::Tensor& x, at::Tensor& history) const;

 private:
  Convolution convolution_;
  int64_t history_frames_;
};

}  // namespace wan
