#include "engine/ops/convolution.h"

#include <ATen/Context.h>
#include <ATen/ops/convolution.h>
#include <ATen/ops/cudnn_convolution.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/mkldnn_convolution.h>
#include <c10/util/Exception.h>
#include <c10/util/accumulate.h>

#include <algorithm>
#include <utility>

#include "engine/ops/fused_convolution.h"

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
  const auto all = [](const std::vector<int64_t>& values, int64_t value) {
    return std::all_of(values.begin(), values.end(), [&](int64_t v) { return v == value; });
  };
  fused_ = all(stride_, 1) && all(padding_, 0) &&
           c10::multiply_integers(weight_.sizes().slice(2)) == 1 &&
           HasFusedConvolution(weight_, Spread::kNone, allow_tf32_);
}

void Convolution::AddTo(const at::Tensor& x, at::Tensor& y) const {
  if (!fused_) {
    y.add_((*this)(x));
    return;
  }
  FusedConvolution convolution;
  convolution.weight = weight_;
  convolution.bias = bias_;
  convolution.frames = {x};
  convolution.addend = y;
  ConvolveFused(convolution, y);
}

at::Tensor Convolution::operator()(const at::Tensor& x) const {
  if (!x.is_cuda()) return Whole(x);
  const bool fits =
      x.numel() <= kMaxElements && c10::multiply_integers(OutputSizes(x)) <= kMaxElements;
  return fits ? Whole(x) : InPieces(x, kMaxElements);
}

std::vector<int64_t> Convolution::OutputSizes(const at::Tensor& x) const {
  std::vector<int64_t> sizes = {x.size(0), weight_.size(0)};
  for (size_t i = 0; i < stride_.size(); ++i) {
    const auto dim = static_cast<int64_t>(i) + 2;
    sizes.push_back((x.size(dim) + 2 * padding_[i] - weight_.size(dim)) / stride_[i] + 1);
  }
  return sizes;
}

at::Tensor Convolution::InPieces(const at::Tensor& x, int64_t max_elements) const {
  const std::vector<int64_t> sizes = OutputSizes(x);
  at::Tensor y = at::empty(sizes, x.options().memory_format(ConvolutionLayout(x.dim())));
  const bool has_frames = x.dim() == 5;
  const int64_t frame_dim = has_frames ? 2 : 0;
  const int64_t kernel = has_frames ? weight_.size(2) : 1;
  const int64_t stride = has_frames ? stride_[0] : 1;
  TORCH_CHECK(!has_frames || (padding_[0] == 0 && x.size(0) == 1),
              "pieces are of one video, whose border in time is in the input");
  const int64_t in_frame = x.numel() / x.size(frame_dim);
  const int64_t out_frame = y.numel() / y.size(frame_dim);
  // The first of n output frames reads one window of input frames; each further output frame needs
  // `stride` more input frames.
  const auto fits = [&](int64_t n) {
    return ((n - 1) * stride + kernel) * in_frame <= max_elements && n * out_frame <= max_elements;
  };
  int64_t frames = 1;
  while (frames < y.size(frame_dim) && fits(frames + 1)) ++frames;
  for (int64_t first = 0; first < y.size(frame_dim); first += frames) {
    const int64_t count = std::min(frames, y.size(frame_dim) - first);
    const at::Tensor in = x.narrow(frame_dim, first * stride, (count - 1) * stride + kernel);
    at::Tensor out = y.narrow(frame_dim, first, count);
    if (fits(count)) {
      WholeInto(in, out);
    } else {
      InRows(in, max_elements, out);
    }
  }
  return y;
}

void Convolution::InRows(const at::Tensor& x, int64_t max_elements, at::Tensor& y) const {
  const int64_t row_dim = x.dim() - 2;
  const size_t axis = stride_.size() - 2;
  const int64_t kernel = weight_.size(row_dim);
  const int64_t stride = stride_[axis];
  const int64_t padding = padding_[axis];
  const int64_t in_row = x.numel() / x.size(row_dim);
  const int64_t out_row = y.numel() / y.size(row_dim);
  // Each piece gets zero padding of its own. If a piece begins inside the frame, its first `margin`
  // result rows are wrong and are dropped.
  const int64_t margin = (padding + stride - 1) / stride;
  const auto fits = [&](int64_t rows) {
    return ((rows - 1 + margin) * stride + kernel) * in_row <= max_elements &&
           (rows + 2 * margin) * out_row <= max_elements;
  };
  TORCH_CHECK(fits(1), "a convolution of ", x.sizes(), " has rows too large for ", max_elements,
              " elements");
  int64_t rows = 1;
  while (rows < y.size(row_dim) && fits(rows + 1)) ++rows;
  for (int64_t first = 0; first < y.size(row_dim); first += rows) {
    const int64_t count = std::min(rows, y.size(row_dim) - first);
    const int64_t before = std::min(margin, first);
    const int64_t begin = (first - before) * stride;
    const int64_t end = std::min((first + count - 1) * stride - padding + kernel, x.size(row_dim));
    const at::Tensor piece =
        Whole(x.narrow(row_dim, begin, end - begin).contiguous(ConvolutionLayout(x.dim())));
    y.narrow(row_dim, first, count).copy_(piece.narrow(row_dim, before, count));
  }
}

void Convolution::WholeInto(const at::Tensor& x, at::Tensor& y) const {
  if (!x.is_cuda()) {
    y.copy_(Whole(x));
    return;
  }
  const at::Context& context = at::globalContext();
  at::cudnn_convolution_out(y, x, weight_, padding_, stride_, dilation_, /*groups=*/1,
                            context.benchmarkCuDNN(), context.deterministicCuDNN(), allow_tf32_);
  y.add_(bias_over_pixels_);
}

at::Tensor Convolution::Whole(const at::Tensor& x) const {
  const at::Context& context = at::globalContext();
  if (x.is_cuda()) {
    // Call cudnn_convolution directly, because it takes TF32 as an argument.
    at::Tensor y =
        at::cudnn_convolution(x, weight_, padding_, stride_, dilation_, /*groups=*/1,
                              context.benchmarkCuDNN(), context.deterministicCuDNN(), allow_tf32_);
    return y.add_(bias_over_pixels_);
  }
  if (x.scalar_type() == at::kFloat && at::Context::hasMKLDNN() && context.userEnabledMkldnn()) {
    // Call oneDNN directly: at::convolution would not use it for one small video, and is seven
    // times slower.
    return at::mkldnn_convolution(x, weight_, bias_, padding_, stride_, dilation_, /*groups=*/1);
  }
  const std::vector<int64_t> output_padding(stride_.size(), 0);
  return at::convolution(x, weight_, bias_, stride_, padding_, dilation_, /*transposed=*/false,
                         output_padding, /*groups=*/1);
}

}  // namespace wan
