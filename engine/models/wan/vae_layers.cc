#include "engine/models/wan/vae_layers.h"

#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/scaled_dot_product_attention.h>
#include <ATen/ops/zeros.h>
#include <c10/util/Exception.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/ops/channel_rms_norm.h"
#include "engine/ops/duplicate_up_3d.h"
#include "engine/ops/fused_convolution.h"
#include "engine/ops/nearest_upsample.h"

namespace wan {
namespace {

const std::vector<int64_t> kKernelTime{3, 1, 1};

// Views of [1, C, T, H, W] as [T, C, H, W] and back, both dense in ConvolutionLayout, so that 2D
// convolutions take frames as a batch without a copy.
at::Tensor FramesAsBatch(const at::Tensor& x) { return x.squeeze(0).transpose(0, 1); }
at::Tensor BatchAsFrames(const at::Tensor& x) { return x.transpose(0, 1).unsqueeze(0); }

}  // namespace

std::string StageLayerName(const VaeConfig& config, const std::string& list, size_t stage,
                           int layers, int layer) {
  if (config.kind == VaeKind::kWan21) {
    return absl::StrCat(list, ".", static_cast<int>(stage) * layers + layer);
  }
  const std::string inner = list.substr(list.find('.') + 1);
  return absl::StrCat(list, ".", stage, ".", inner, ".", layer);
}

at::Tensor LoadedVaeWeights::Get(const std::string& name, at::IntArrayRef shape) {
  return tensors_[name] = loader_.Get(name, shape);
}

at::Tensor LoadedVaeWeights::GetKernel(const std::string& name, at::IntArrayRef shape) {
  const at::MemoryFormat layout = ConvolutionLayout(static_cast<int64_t>(shape.size()));
  return tensors_[name] = loader_.GetKernel(name, shape, layout);
}

at::Tensor CastVaeWeights::Get(const std::string& name, at::IntArrayRef) {
  return tensors_.at(name).to(dtype_);
}

at::Tensor CastVaeWeights::GetKernel(const std::string& name, at::IntArrayRef shape) {
  return Get(name, shape);  // the kernel was already loaded in ConvolutionLayout
}

at::Tensor LoadedVaeWeights::GetEnlarged(const std::string& name) {
  TORCH_CHECK(false, name, " is not there yet");
}

at::Tensor CastVaeWeights::GetEnlarged(const std::string& name) {
  return KernelOverEnlargement(tensors_.at(name)).to(dtype_);
}

at::Tensor VaeLayerFactory::KernelOf(const std::string& name, const std::vector<int64_t>& shape) {
  return weights_.GetKernel(name + ".weight", shape);
}

Convolution VaeLayerFactory::MakeConvolution(const std::string& name, int64_t out, int64_t in,
                                             const std::vector<int64_t>& kernel,
                                             std::vector<int64_t> stride,
                                             std::vector<int64_t> padding) {
  std::vector<int64_t> shape{out, in};
  shape.insert(shape.end(), kernel.begin(), kernel.end());
  return Convolution(KernelOf(name, shape), weights_.Get(name + ".bias", {out}), std::move(stride),
                     std::move(padding), allow_tf32_);
}

Convolution VaeLayerFactory::MakeUnbiased(const std::string& name, int64_t out, int64_t in,
                                          const std::vector<int64_t>& kernel,
                                          std::vector<int64_t> padding) {
  std::vector<int64_t> shape{out, in};
  shape.insert(shape.end(), kernel.begin(), kernel.end());
  const at::Tensor weight = KernelOf(name, shape);
  return Convolution(
      weight, at::zeros({out}, at::TensorOptions(weight.device()).dtype(weight.scalar_type())),
      std::vector<int64_t>(kernel.size(), 1), std::move(padding), allow_tf32_);
}

Convolution VaeLayerFactory::MakePointwise3d(const std::string& name, int64_t out, int64_t in) {
  return MakeConvolution(name, out, in, {1, 1, 1}, {1, 1, 1}, {0, 0, 0});
}

at::Tensor VaeLayerFactory::MakeEnlargedKernel(const std::string& name,
                                               const Convolution& convolution) {
  const at::Tensor& kernel = convolution.weight();
  const bool fused = kernel.is_cuda() &&
                     HasFusedConvolution(
                         at::empty({4 * kernel.size(0), kernel.size(1), 1, 2, 2}, kernel.options()),
                         Spread::kPixels, allow_tf32_);
  return fused ? weights_.GetEnlarged(name + ".weight") : at::Tensor();
}

CausalConv3d VaeLayerFactory::MakeCausalConv3d(const std::string& name, int64_t out, int64_t in,
                                               const std::vector<int64_t>& kernel,
                                               int64_t time_stride) {
  return CausalConv3d(KernelOf(name, {out, in, kernel[0], kernel[1], kernel[2]}),
                      weights_.Get(name + ".bias", {out}), time_stride, allow_tf32_);
}

CausalConv3d VaeLayerFactory::MakeConv3dOfNormed(const std::string& name, int64_t out, int64_t in) {
  at::Tensor kernel = KernelOf(name, {out, in, 3, 3, 3});
  if (allow_tf32_ && kernel.is_cuda()) {
    const at::Tensor rounded = kernel.to(at::kHalf);
    if (HasFusedConvolution(rounded, Spread::kNone, /*allow_tf32=*/false)) kernel = rounded;
  }
  return CausalConv3d(kernel, weights_.Get(name + ".bias", {out}), /*time_stride=*/1, allow_tf32_);
}

CachedConv3d::CachedConv3d(VaeLayerFactory& factory, const std::string& name, int64_t out,
                           int64_t in, const std::vector<int64_t>& kernel, int64_t time_stride)
    : conv_(factory.MakeCausalConv3d(name, out, in, kernel, time_stride)),
      slot_(factory.NewSlot()) {}

at::Tensor CachedConv3d::Forward(const at::Tensor& x, FeatureCache& cache) const {
  return conv_(x, cache.history[slot_]);
}

at::Tensor CachedConv3d::SpreadFrames(const at::Tensor& x, FeatureCache& cache) const {
  return conv_.SpreadFrames(x, cache.history[slot_]);
}

void CachedConv3d::Remember(const at::Tensor& x, FeatureCache& cache) const {
  conv_.Remember(x, cache.history[slot_]);
}

CausalWindow CachedConv3d::OpenWindow(const at::Tensor& x, const FeatureCache& cache) const {
  return conv_.OpenWindow(cache.history[slot_], x.size(2), x.size(3), x.size(4));
}

at::Tensor CachedConv3d::Run(CausalWindow window, FeatureCache& cache,
                             const at::Tensor& addend) const {
  return conv_.Run(std::move(window), cache.history[slot_], addend);
}

NormSiluConv3d::NormSiluConv3d(VaeLayerFactory& factory, const std::string& norm,
                               const std::string& conv, int64_t out, int64_t in)
    : gamma_(factory.weights().Get(norm + ".gamma", {in, 1, 1, 1})),
      conv_(factory, factory.MakeConv3dOfNormed(conv, out, in)) {}

at::Tensor NormSiluConv3d::Forward(at::Tensor x, FeatureCache& cache,
                                   const at::Tensor& addend) const {
  CausalWindow window = conv_.OpenWindow(x, cache);
  window.Fill([&](int64_t first, const at::Tensor& frames) {
    ChannelRmsNormSilu(x.narrow(/*dim=*/2, first, frames.size(2)), gamma_, frames);
  });
  x.reset();
  return conv_.Run(std::move(window), cache, addend);
}

ResidualBlock::ResidualBlock(VaeLayerFactory& factory, const std::string& name, int64_t out,
                             int64_t in)
    : first_(factory, name + ".residual.0", name + ".residual.2", out, in),
      second_(factory, name + ".residual.3", name + ".residual.6", out, out) {
  if (in != out) shortcut_.emplace(factory.MakePointwise3d(name + ".shortcut", out, in));
}

at::Tensor ResidualBlock::Forward(const at::Tensor& x, FeatureCache& cache) const {
  if (!shortcut_.has_value()) return second_.Forward(first_.Forward(x, cache), cache, x);
  at::Tensor y = second_.Forward(first_.Forward(x, cache), cache);
  // Project the input last, so that the projection's memory is not held during the convolutions.
  shortcut_->AddTo(x, y);
  return y;
}

double WorkOfResidualBlock(int64_t in, const at::Tensor& y) {
  constexpr double kFlopsOfATap = 2;
  constexpr double kTaps = 3 * 3 * 3;
  constexpr double kTf32 = 2;
  return kTf32 * kFlopsOfATap * kTaps * static_cast<double>(in + y.size(1)) *
         static_cast<double>(y.numel());
}

FrameAttention::FrameAttention(VaeLayerFactory& factory, const std::string& name,
                               int64_t channels) {
  VaeWeights& weights = factory.weights();
  gamma_ = weights.Get(name + ".norm.gamma", {channels, 1, 1});
  qkv_weight_ = weights.Get(name + ".to_qkv.weight", {3 * channels, channels, 1, 1})
                    .view({3 * channels, channels});
  qkv_bias_ = weights.Get(name + ".to_qkv.bias", {3 * channels});
  projection_weight_ =
      weights.Get(name + ".proj.weight", {channels, channels, 1, 1}).view({channels, channels});
  projection_bias_ = weights.Get(name + ".proj.bias", {channels});
  rounds_ = factory.allow_tf32() && qkv_weight_.is_cuda();
  if (!rounds_) return;
  for (at::Tensor* const weight :
       {&qkv_weight_, &qkv_bias_, &projection_weight_, &projection_bias_}) {
    *weight = weight->to(at::kHalf);
  }
}

at::Tensor FrameAttention::Forward(const at::Tensor& x) const {
  const int64_t channels = x.size(1);
  const int64_t height = x.size(3);
  const int64_t width = x.size(4);
  // 1x1 convolutions are matrix products over rows of channels: [frames, 1 head, pixels, C].
  const at::ScalarType dtype = rounds_ ? at::kHalf : x.scalar_type();
  const at::Tensor rows = ChannelRmsNorm(x, gamma_)
                              .to(dtype)
                              .permute({0, 2, 3, 4, 1})
                              .reshape({-1, 1, height * width, channels});
  const std::vector<at::Tensor> qkv = at::linear(rows, qkv_weight_, qkv_bias_).chunk(3, /*dim=*/-1);
  const at::Tensor attended = at::scaled_dot_product_attention(qkv[0], qkv[1], qkv[2]);
  const at::Tensor projected = at::linear(attended, projection_weight_, projection_bias_);
  return projected.view({1, -1, height, width, channels})
      .permute({0, 4, 1, 2, 3})
      .to(x.scalar_type())
      .add_(x);
}

MiddleBlock::MiddleBlock(VaeLayerFactory& factory, const std::string& name, int64_t channels)
    : first_(factory, name + ".0", channels, channels),
      attention_(factory, name + ".1", channels),
      second_(factory, name + ".2", channels, channels) {}

at::Tensor MiddleBlock::Forward(const at::Tensor& x, FeatureCache& cache) const {
  return second_.Forward(attention_.Forward(first_.Forward(x, cache)), cache);
}

Downsample::Downsample(VaeLayerFactory& factory, const std::string& name, int64_t channels,
                       bool temporal)
    : space_(factory.MakeConvolution(name + ".resample.1", channels, channels, {3, 3}, {2, 2},
                                     {0, 0})) {
  if (temporal) {
    time_.emplace(factory, name + ".time_conv", channels, channels, kKernelTime, /*time_stride=*/2);
  }
}

at::Tensor Downsample::Forward(const at::Tensor& x, FeatureCache& cache) const {
  // Pads only on the right and below; a convolution's own padding is symmetric.
  const at::Tensor bordered = at::constant_pad_nd(FramesAsBatch(x), {0, 1, 0, 1}, /*value=*/0);
  at::Tensor y = BatchAsFrames(space_(bordered));
  if (!time_.has_value()) return y;
  if (!cache.first_chunk) return time_->Forward(y, cache);
  time_->Remember(y, cache);
  return y;
}

Upsample::Upsample(VaeLayerFactory& factory, const std::string& name, int64_t out, int64_t in,
                   bool temporal)
    : space_(factory.MakeConvolution(name + ".resample.1", out, in, {3, 3}, {1, 1}, {1, 1})),
      enlarged_(factory.MakeEnlargedKernel(name + ".resample.1", space_)) {
  if (!temporal) return;
  time_.emplace(factory, name + ".time_conv", 2 * in, in, kKernelTime);
  if (!time_->SpreadsFrames()) enlarged_.reset();
}

at::Tensor Upsample::ForwardFused(at::Tensor x, FeatureCache& cache,
                                  const at::Tensor& shortcut) const {
  if (time_.has_value() && !cache.first_chunk) x = time_->SpreadFrames(x, cache);
  FusedConvolution convolution;
  convolution.weight = enlarged_;
  convolution.bias = space_.bias();
  convolution.frames = {x};
  convolution.spread = Spread::kPixels;
  const int64_t channels = convolution.bias.size(0);
  const bool adds = shortcut.defined() && CanAddDuplicate(shortcut.size(1), channels);
  if (adds) {
    convolution.addend = shortcut;
    convolution.addend_time_factor = ShortcutTimeFactor();
  }
  at::Tensor y = at::empty({1, channels, x.size(2), 2 * x.size(3), 2 * x.size(4)},
                           x.options().memory_format(ConvolutionLayout(x.dim())));
  ConvolveFused(convolution, y);
  if (shortcut.defined() && !adds) {
    AddDuplicateUp3d(y, shortcut, ShortcutTimeFactor(), /*space_factor=*/2);
  }
  return y;
}

at::Tensor Upsample::Forward(at::Tensor x, FeatureCache& cache, const at::Tensor& shortcut) const {
  if (enlarged_.defined()) return ForwardFused(std::move(x), cache, shortcut);
  int64_t time_factor = 1;
  if (time_.has_value() && !cache.first_chunk) {
    x = time_->Forward(x, cache);
    time_factor = 2;
  }
  x = NearestUpsample(x, time_factor);
  at::Tensor y = BatchAsFrames(space_(FramesAsBatch(x)));
  if (shortcut.defined()) {
    AddDuplicateUp3d(y, shortcut, ShortcutTimeFactor(), /*space_factor=*/2);
  }
  return y;
}

}  // namespace wan
