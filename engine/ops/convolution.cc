#include "engine/ops/convolution.h"

#include <ATen/Context.h>
#include <ATen/ops/convolution.h>
#include <ATen/ops/cudnn_convolution.h>

#include <utility>

namespace wan {

ConvolutionPolicy ConvolutionPolicy::For(at::Device device, bool allow_tf32) {
  return {.allow_tf32 = allow_tf32, .channels_last = device.is_cuda()};
}

at::MemoryFormat ConvolutionPolicy::Format(int64_t dim) const {
  if (!channels_last) return at::MemoryFormat::Contiguous;
  return dim == 4 ? at::MemoryFormat::ChannelsLast : at::MemoryFormat::ChannelsLast3d;
}

Convolution::Convolution(const at::Tensor& weight, at::Tensor bias, std::vector<int64_t> stride,
                         std::vector<int64_t> padding, ConvolutionPolicy policy)
    : weight_(weight.contiguous(policy.Format(weight.dim()))),
      bias_(std::move(bias)),
      stride_(std::move(stride)),
      padding_(std::move(padding)),
      dilation_(stride_.size(), 1),
      policy_(policy) {
  std::vector<int64_t> broadcast(stride_.size() + 1, 1);
  broadcast[0] = bias_.size(0);
  bias_over_pixels_ = bias_.view(broadcast);
}

at::Tensor Convolution::operator()(const at::Tensor& x) const {
  if (!x.is_cuda()) {
    return at::convolution(x, weight_, bias_, stride_, padding_, dilation_, /*transposed=*/false,
                           /*output_padding=*/std::vector<int64_t>(stride_.size(), 0),
                           /*groups=*/1);
  }
  // Straight to cuDNN, which takes the TF32 choice with the call.
  const at::Context& context = at::globalContext();
  at::Tensor y = at::cudnn_convolution(x, weight_, padding_, stride_, dilation_, /*groups=*/1,
                                       context.benchmarkCuDNN(), context.deterministicCuDNN(),
                                       policy_.allow_tf32);
  return y.add_(bias_over_pixels_);
}

}  // namespace wan
