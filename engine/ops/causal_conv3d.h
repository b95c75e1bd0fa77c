// A convolution over frames, rows and columns that looks back in time only and takes one chunk of
// frames after another.
//
// The chunks give exactly the result of the whole video: the last frames of a chunk's input stay in
// a history, which precedes the frames of the next chunk. Zeros precede the first chunk. The
// operator before the convolution writes its result directly into the window that the convolution
// reads, so no frame is copied only to be placed behind the history:
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

// The input of a causal convolution for one chunk: the frames before it, and the chunk's own, which
// the caller writes.
class CausalWindow {
 public:
  // Calls `write` for each run of the chunk's frames with the number of its first frame and the
  // place of the run, [1, in, n, height, width]. Every value of every run must be written.
  void Fill(const std::function<void(int64_t first, const at::Tensor& frames)>& write) const;

 private:
  friend class CausalConv3d;

  // The runs of frames that are read, in order; frames of zeros before the chunk's own are left
  // out.
  std::vector<at::Tensor> runs_;
  // The chunk's own frames in `runs`, without the channels that fill up.
  std::vector<at::Tensor> new_frames_;
  // The next chunk's history, unless it is copied from the runs.
  at::Tensor next_;
};

class CausalConv3d {
 public:
  // `weight` is [out, in, kt, kh, kw] with kh and kw odd, `bias` [out]. Rows and columns keep their
  // number; frames are taken every `time_stride`, at most kt. `allow_tf32` as in Convolution. Where
  // HasFusedConvolution says so, `weight` of 3x3x3 may be fp16 and `bias` fp32: windows are fp16
  // then, and results fp32.
  CausalConv3d(const at::Tensor& weight, at::Tensor bias, int64_t time_stride, bool allow_tf32);

  // The number of earlier frames that the convolution reads: kt - time_stride.
  int64_t history_frames() const { return history_frames_; }

  // Returns a window for a chunk that follows `history`, or zeros if `history` is undefined.
  CausalWindow OpenWindow(const at::Tensor& history, int64_t frames, int64_t height,
                          int64_t width) const;

  // Returns [1, out, frames / time_stride, height, width], to which `addend` of the same shape is
  // added if it is defined. Moves `history` on to the end of the window and releases the window.
  at::Tensor Run(CausalWindow window, at::Tensor& history, const at::Tensor& addend = {}) const;

  // Does all of this for an existing input x [1, in, frames, height, width].
  at::Tensor operator()(const at::Tensor& x, at::Tensor& history) const;

  // The same with Spread::kFrames (fused_convolution.h): [1, out / 2, 2 * frames, height, width].
  // Only if SpreadsFrames.
  bool SpreadsFrames() const { return spreads_frames_; }
  at::Tensor SpreadFrames(const at::Tensor& x, at::Tensor& history) const;

  // Moves `history` on to the end of x (at least history_frames frames) without convolving.
  void Remember(const at::Tensor& x, at::Tensor& history) const;

 private:
  CausalWindow CopyToWindow(const at::Tensor& x, const at::Tensor& history) const;
  at::Tensor RunFused(CausalWindow window, Spread spread, const at::Tensor& addend,
                      at::Tensor& history) const;

  Convolution convolution_;
  int64_t history_frames_;
  // Channels of a window. If one kernel (fused_convolution.h) reads the frames in place, it takes
  // channels by the chunk, so zeros may follow those of the weights.
  int64_t channels_;
  bool fused_;
  bool spreads_frames_ = false;
};

}  // namespace wan
