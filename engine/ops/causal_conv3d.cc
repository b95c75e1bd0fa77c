#include "engine/ops/causal_conv3d.h"

#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>

#include <algorithm>
#include <utility>

namespace wan {
namespace {

constexpr int64_t kChannels = 1;
constexpr int64_t kTime = 2;
// With fewer result channels, padding the input's channels costs more time than the fused kernel
// gains.
constexpr int64_t kLeastFilledUpTo = 96;

// Appends zero channels to an input or a kernel.
at::Tensor WithChannels(const at::Tensor& x, int64_t channels) {
  const int64_t missing = channels - x.size(kChannels);
  if (missing == 0) return x;
  return at::constant_pad_nd(x, {0, 0, 0, 0, 0, 0, 0, missing})
      .contiguous(ConvolutionLayout(x.dim()));
}

}  // namespace

void CausalWindow::Fill(
    const std::function<void(int64_t first, const at::Tensor& frames)>& write) const {
  int64_t first = 0;
  for (const at::Tensor& frames : new_frames_) {
    write(first, frames);
    first += frames.size(kTime);
  }
}

CausalConv3d::CausalConv3d(const at::Tensor& weight, at::Tensor bias, int64_t time_stride,
                           bool allow_tf32)
    : convolution_(weight, std::move(bias), /*stride=*/{time_stride, 1, 1},
                   /*padding=*/{0, weight.size(3) / 2, weight.size(4) / 2}, allow_tf32),
      history_frames_(weight.size(kTime) - time_stride),
      channels_(weight.size(1)),
      fused_(false) {
  if (time_stride != 1 || !weight.is_cuda()) return;
  const int64_t chunk = kFusedChannelBytes / weight.element_size();
  const int64_t whole_chunks = (channels_ + chunk - 1) / chunk * chunk;
  if (whole_chunks != channels_ && weight.size(0) < kLeastFilledUpTo) return;
  fused_ = HasFusedConvolution(WithChannels(weight, whole_chunks), Spread::kNone, allow_tf32);
  if (fused_) channels_ = whole_chunks;
  spreads_frames_ = fused_ && channels_ == weight.size(kChannels) &&
                    HasFusedConvolution(weight, Spread::kFrames, allow_tf32);
}

CausalWindow CausalConv3d::OpenWindow(const at::Tensor& history, int64_t frames, int64_t height,
                                      int64_t width) const {
  const at::Tensor& weight = convolution_.weight();
  const auto allocate = [&](int64_t count) {
    return at::empty({1, channels_, count, height, width},
                     weight.options().memory_format(ConvolutionLayout(weight.dim())));
  };
  const auto copy_or_clear = [](const at::Tensor& to, const at::Tensor& from) {
    if (from.defined()) {
      to.copy_(from);
    } else {
      to.zero_();
    }
  };
  CausalWindow window;
  if (!fused_) {
    const at::Tensor memory = allocate(history_frames_ + frames);
    copy_or_clear(memory.narrow(kTime, 0, history_frames_), history);
    window.runs_ = {memory};
    window.new_frames_ = {memory.narrow(kTime, history_frames_, frames)};
    return window;
  }
  const int64_t channels = weight.size(kChannels);
  const auto add_new = [&](const at::Tensor& run) {
    if (channels != channels_) run.narrow(kChannels, channels, channels_ - channels).zero_();
    window.runs_.push_back(run);
    window.new_frames_.push_back(run.narrow(kChannels, 0, channels));
  };
  if (history.defined()) window.runs_.push_back(history);
  // The chunk's last frames are written directly into the next history. If the chunk is shorter
  // than the history, older frames move up.
  const int64_t kept = std::max<int64_t>(history_frames_ - frames, 0);
  if (frames > history_frames_) add_new(allocate(frames - history_frames_));
  if (history_frames_ == 0) return window;
  window.next_ = allocate(history_frames_);
  if (kept > 0) {
    copy_or_clear(
        window.next_.narrow(kTime, 0, kept),
        history.defined() ? history.narrow(kTime, history_frames_ - kept, kept) : at::Tensor());
  }
  add_new(window.next_.narrow(kTime, kept, history_frames_ - kept));
  return window;
}

at::Tensor CausalConv3d::Run(CausalWindow window, at::Tensor& history,
                             const at::Tensor& addend) const {
  if (fused_) return RunFused(std::move(window), Spread::kNone, addend, history);
  const at::Tensor& memory = window.runs_.front();
  Remember(memory, history);
  at::Tensor y = convolution_(memory);
  return addend.defined() ? y.add_(addend) : y;
}

at::Tensor CausalConv3d::RunFused(CausalWindow window, Spread spread, const at::Tensor& addend,
                                  at::Tensor& history) const {
  int64_t frames = 0;
  for (const at::Tensor& run : window.new_frames_) frames += run.size(kTime);
  FusedConvolution convolution;
  convolution.weight = WithChannels(convolution_.weight(), channels_);
  convolution.bias = convolution_.bias();
  convolution.frames = std::move(window.runs_);
  convolution.leading_zeros = history.defined() ? 0 : history_frames_;
  convolution.spread = spread;
  convolution.addend = addend;
  const at::Tensor& last = convolution.frames.back();
  const int64_t factor = spread == Spread::kFrames ? 2 : 1;
  at::Tensor y = at::empty(
      {1, convolution.weight.size(0) / factor, frames * factor, last.size(3), last.size(4)},
      convolution.bias.options().memory_format(ConvolutionLayout(last.dim())));
  ConvolveFused(convolution, y);
  history = std::move(window.next_);
  return y;
}

CausalWindow CausalConv3d::CopyToWindow(const at::Tensor& x, const at::Tensor& history) const {
  CausalWindow window = OpenWindow(history, x.size(kTime), x.size(3), x.size(4));
  window.Fill([&](int64_t first, const at::Tensor& frames) {
    frames.copy_(x.narrow(kTime, first, frames.size(kTime)));
  });
  return window;
}

at::Tensor CausalConv3d::operator()(const at::Tensor& x, at::Tensor& history) const {
  return Run(CopyToWindow(x, history), history);
}

at::Tensor CausalConv3d::SpreadFrames(const at::Tensor& x, at::Tensor& history) const {
  return RunFused(CopyToWindow(x, history), Spread::kFrames, /*addend=*/{}, history);
}

void CausalConv3d::Remember(const at::Tensor& x, at::Tensor& history) const {
  const at::Tensor last = x.narrow(kTime, x.size(kTime) - history_frames_, history_frames_);
  // Copy the frames: a view would keep the whole window alive, which takes three times as much
  // memory.
  if (!history.defined()) history = at::empty_like(last);
  history.copy_(last);
}

}  // namespace wan
