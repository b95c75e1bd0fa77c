#include "engine/ops/causal_conv3d.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>

#include <utility>

namespace wan {
namespace {

constexpr int64_t kTime = 2;

}  // namespace

CausalConv3d::CausalConv3d(const at::Tensor& weight, at::Tensor bias, int64_t time_stride,
                           bool allow_tf32)
    : convolution_(weight, std::move(bias), /*stride=*/{time_stride, 1, 1},
                   /*padding=*/{0, weight.size(3) / 2, weight.size(4) / 2}, allow_tf32),
      history_frames_(weight.size(kTime) - time_stride) {}

at::Tensor CausalConv3d::OpenWindow(const at::Tensor& history, int64_t frames, int64_t height,
                                    int64_t width) const {
  const at::Tensor& weight = convolution_.weight();
  at::Tensor window = at::empty({1, weight.size(1), history_frames_ + frames, height, width},
                                weight.options().memory_format(ConvolutionLayout(weight.dim())));
  at::Tensor past = window.narrow(kTime, 0, history_frames_);
  if (history.defined()) {
    past.copy_(history);
  } else {
    past.zero_();
  }
  return window;
}

at::Tensor CausalConv3d::NewFrames(const at::Tensor& window) const {
  return window.narrow(kTime, history_frames_, window.size(kTime) - history_frames_);
}

at::Tensor CausalConv3d::Run(at::Tensor window, at::Tensor& history) const {
  Remember(window, history);
  return convolution_(window);
}

at::Tensor CausalConv3d::operator()(const at::Tensor& x, at::Tensor& history) const {
  at::Tensor window = OpenWindow(history, x.size(kTime), x.size(3), x.size(4));
  NewFrames(window).copy_(x);
  return Run(std::move(window), history);
}

void CausalConv3d::Remember(const at::Tensor& x, at::Tensor& history) const {
  const at::Tensor last = x.narrow(kTime, x.size(kTime) - history_frames_, history_frames_);
  // The frames are copied out: a view would keep the whole window, three times as much, alive.
  if (!history.defined()) history = at::empty_like(last);
  history.copy_(last);
}

}  // namespace wan
