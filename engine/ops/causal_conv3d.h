// A convolution over frames, rows and columns that reads no later frames and processes a video in
// chunks.
//
// The result equals a convolution of the whole video at once: a history keeps the last frames of a
// chunk's input and precedes the frames of the next chunk. Zeros precede the first chunk. The
// preceding operator writes directly into the window that the convolution reads, which saves a
// copy:
//
//   CausalWindow window = conv.OpenWindow(history, frames, height, width);
//   window.Fill([&](int64_t first, const at::Tensor& frames) {
//     ChannelRmsNormSilu(x.narrow(2, first, frames.size(2)), gamma, frames);
//   });
//   at::Tensor y = conv.Run(std::move(window), history);
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <vector>

#include "engine/ops/convolution.h"
#include "engine/ops/fused_convolution.h"

namespace wan {

// A convolution's input for one chunk: earlier frames, followed by the chunk's own frames, which
// the caller writes.
class CausalWindow {
 public:
  // Calls `write` for each run of consecutive frames of the chunk, with the index of its first
  // frame and its memory [1, in, n, height, width]. `write` must set every value.
  void Fill(const std::function<void(int64_t first, const at::Tensor& frames)>& write) const;

 private:
  friend class CausalConv3d;

  // The convolution's input in order of time, without the zero frames before the first chunk.
  std::vector<at::Tensor> runs_;
  // The chunk's own frames: views into `runs_` without padded channels.
  std::vector<at::Tensor> new_frames_;
  // The history for the next chunk; undefined if Run has to copy it from `runs_`.
  at::Tensor next_;
};

class CausalConv3d {
 public:
  // `weight` is [out, in, kt, kh, kw] with kh and kw odd, `bias` [out]. The result has the input's
  // height and width, and one frame for each `time_stride` input frames (at most kt). `allow_tf32`
  // has the meaning that it has in Convolution. Where HasFusedConvolution allows it, a 3x3x3
  // `weight` may be fp16 and `bias` fp32: windows are fp16 then, and results fp32.
  CausalConv3d(const at::Tensor& weight, at::Tensor bias, int64_t time_stride, bool allow_tf32);

  // The number of earlier frames that the convolution reads: kt - time_stride.
  int64_t history_frames() const { return history_frames_; }

  // Returns a window for a chunk that follows `history`. If `history` is undefined, zeros precede
  // the chunk.
  CausalWindow OpenWindow(const at::Tensor& history, int64_t frames, int64_t height,
                          int64_t width) const;

  // Returns the convolution of the window, [1, out, frames / time_stride, height, width]. Adds
  // `addend`, which has this shape, if it is defined. Sets `history` to the window's last frames
  // and frees the window.
  at::Tensor Run(CausalWindow window, at::Tensor& history, const at::Tensor& addend = {}) const;

  // Opens, fills and runs a window for an input x [1, in, frames, height, width] that exists
  // already.
  at::Tensor operator()(const at::Tensor& x, at::Tensor& history) const;

  // Opens, fills and runs a window for x with Spread::kFrames (fused_convolution.h); the result is
  // [1, out / 2, 2 * frames, height, width]. Call SpreadFrames only if SpreadsFrames() is true.
  bool SpreadsFrames() const { return spreads_frames_; }
  at::Tensor SpreadFrames(const at::Tensor& x, at::Tensor& history) const;

  // Sets `history` to the last frames of x (which has at least history_frames frames) without
  // computing the convolution.
  void Remember(const at::Tensor& x, at::Tensor& history) const;

 private:
  CausalWindow CopyToWindow(const at::Tensor& x, const at::Tensor& history) const;
  at::Tensor RunFused(CausalWindow window, Spread spread, const at::Tensor& addend,
                      at::Tensor& history) const;

  Convolution convolution_;
  int64_t history_frames_;
  // The number of channels of a window. The fused kernel (fused_convolution.h) needs whole chunks
  // of channels, so a window may have more channels than the weights; the additional channels are
  // zero.
  int64_t channels_;
  bool fused_;
  bool spreads_frames_ = false;
};

}  // namespace wan
