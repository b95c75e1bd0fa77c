#include "engine/ops/convolution.h"

#include <ATen/Context.h>
#include <ATen/ops/convolution.h>
#include <ATen/ops/cudnn_convolution.h>
#include <ATen/ops/mkldnn_convolution.h>

#include <utility>

namespace wan {

Convolution::Convolution(const at::Tensor& weight, at::Tensor bias, std::vector<int64_t> stride,
                         std::vector<int64_t> padding, bool allow_tf32)
    : weight_(weight.contiguous(ConvolutionLayout(weight.dim()))),
      bias_(std::move(bias)),
      stride_(std::move(stride)),
      padding_(std::move(padding)),
      dilation_(stride_.size(), 1),
      allow_tf32_(allow_tf32) {
  std::vector<int64_t> broadcast(stride_.size() + 1, 1);
  broadcast[0] = bias_.size(0);
  bias_over_pixels_ = bias_.view(broadcast);
}

at::Tensor Convolution::operator()(const at::Tensor& x) const {
  const at::Context& context = at::globalContext();
  if (x.is_cuda()) {
    // cuDNN takes the TF32 choice with the call.
    at::Tensor y =
        at::cudnn_convolution(x, weight_, padding_, stride_, dilation_, /*groups=*/1,
                              context.benchmarkCuDNN(), context.deterministicCuDNN(), allow_tf32_);
    return y.add_(bias_over_pixels_);
  }
  if (x.scalar_type() == at::kFloat && at::Context::hasMKLDNN() && context.userEnabledMkldnn()) {
    // oneDNN, which at::convolution leaves aside for one small video at a time: seven times faster
    // than what it takes instead.
    return at::mkldnn_convolution(x, weight_, bias_, padding_, stride_, dilation_, /*groups=*/1);
  }
  const std::vector<int64_t> output_padding(stride_.size(), 0);
  return at::convolution(x, weight_, bias_, stride_, padding_, dilation_, /*transposed=*/false,
                         output_padding, /*groups=*/1);
}

}  // namespace wan
