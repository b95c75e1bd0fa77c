#include "engine/models/wan/tiny_decoder.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/div.h>
#include <ATen/ops/empty.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/costs/wan/tiny_decoder_cost.h"
#include "engine/ops/nearest_upsample.h"

namespace wan {
namespace {

constexpr int64_t kColors = 3;

// Returns each frame of x with the previous frame in additional channels. `before` comes before the
// first frame; undefined stands for zeros.
at::Tensor WithFrameBefore(const at::Tensor& x, const at::Tensor& before) {
  const int64_t frames = x.size(0);
  const int64_t channels = x.size(1);
  at::Tensor both = at::empty({frames, 2 * channels, x.size(2), x.size(3)},
                              x.options().memory_format(ConvolutionLayout(4)));
  both.narrow(1, 0, channels).copy_(x);
  const at::Tensor past = both.narrow(1, channels, channels);
  if (before.defined()) {
    past.narrow(0, 0, 1).copy_(before);
  } else {
    past.narrow(0, 0, 1).zero_();
  }
  if (frames > 1) past.narrow(0, 1, frames - 1).copy_(x.narrow(0, 0, frames - 1));
  return both;
}

// Doubles rows and columns, and splits the channels of each frame into `growth` frames.
at::Tensor Enlarge(const at::Tensor& x, int64_t growth) {
  return NearestUpsample(x.transpose(0, 1).unsqueeze(0), growth).squeeze(0).transpose(0, 1);
}

// Turns patches [n, 3 p p, h, w] into pixels [3, n, h * p, w * p], contiguous. The channels are
// ordered by colour, then row, then column of the patch.
at::Tensor UnfoldPatches(const at::Tensor& x, int64_t p) {
  const int64_t n = x.size(0);
  const int64_t height = x.size(2);
  const int64_t width = x.size(3);
  return x.view({n, kColors, p, p, height, width})
      .permute({1, 0, 4, 2, 5, 3})
      .contiguous()
      .view({kColors, n, height * p, width * p});
}

std::string LayerName(int number) { return absl::StrCat("tiny_decoder.", number); }

}  // namespace

TinyDecoder::Block::Block(VaeLayerFactory& factory, const std::string& name, int64_t width)
    : first_(factory.MakeConvolution(name + ".conv.0", width, 2 * width, {3, 3}, {1, 1}, {1, 1})),
      second_(factory.MakeConvolution(name + ".conv.2", width, width, {3, 3}, {1, 1}, {1, 1})),
      third_(factory.MakeConvolution(name + ".conv.4", width, width, {3, 3}, {1, 1}, {1, 1})),
      slot_(factory.NewSlot()) {}

at::Tensor TinyDecoder::Block::Forward(const at::Tensor& x, FeatureCache& cache) const {
  at::Tensor& before = cache.history[slot_];
  at::Tensor both = WithFrameBefore(x, before);
  before = x.narrow(0, x.size(0) - 1, 1).clone();
  at::Tensor y = first_(both).relu_();
  both.reset();
  y = second_(y).relu_();
  y = third_(y);
  return y.add_(x).relu_();
}

TinyDecoder::TinyDecoder(VaeLayerFactory& factory, const VaeConfig& config)
    : config_(*config.tiny_decoder),
      in_(factory.MakeConvolution(LayerName(1), config_.widths[0], config_.z_dim, {3, 3}, {1, 1},
                                  {1, 1})) {
  // The layers' numbers also count modules without weights: clamping, activations, upsampling.
  int number = 3;
  for (size_t i = 0; i + 1 < kTinyStages; ++i) {
    const int64_t width = config_.widths[i];
    std::vector<Block> blocks;
    for (int block = 0; block < kTinyBlocks; ++block) {
      blocks.emplace_back(factory, LayerName(number++), width);
    }
    ++number;
    const int64_t growth = TinyDecoderConfig::Growth(i);
    Convolution grow =
        factory.MakeUnbiased(LayerName(number++) + ".conv", growth * width, width, {1, 1}, {0, 0});
    Convolution out =
        factory.MakeUnbiased(LayerName(number++), config_.widths[i + 1], width, {3, 3}, {1, 1});
    stages_.push_back({std::move(blocks), std::move(grow), std::move(out), growth});
  }
  ++number;
  out_ =
      factory.MakeConvolution(LayerName(number), kColors * config_.patch_size * config_.patch_size,
                              config_.widths.back(), {3, 3}, {1, 1}, {1, 1});
  slots_ = factory.slots();
}

absl::StatusOr<at::Tensor> TinyDecoder::DecodeChunk(const at::Tensor& latents, FeatureCache& cache,
                                                    const WorkGate& gate) const {
  at::Tensor x = latents.transpose(0, 1).contiguous(ConvolutionLayout(4));
  x = at::div(x, 3).tanh_().mul_(3);  // the network was trained on values from -3 to 3
  x = in_(x).relu_();
  for (size_t i = 0; i < stages_.size(); ++i) {
    const Stage& stage = stages_[i];
    for (const Block& block : stage.blocks) x = block.Forward(x, cache);
    // Upstream enlarges before this 1x1 product. The result is the same if the product comes first,
    // on a quarter of the pixels.
    x = stage.grow(x);
    x = Enlarge(x, stage.growth);
    x = stage.out(x);
    const double flops = TinyStageFlops(config_, i, latents.size(2), latents.size(3));
    if (absl::Status status = gate.Pass(flops); !status.ok()) return status;
  }
  x.relu_();
  // The first latent frame stands for one video frame: the last frame computed from it.
  if (cache.first_chunk) x = x.narrow(0, x.size(0) - 1, 1);
  cache.first_chunk = false;
  x = (*out_)(x);
  x = UnfoldPatches(x, config_.patch_size);
  return x.mul_(2).sub_(1);  // the network's colours are from 0 to 1
}

}  // namespace wan
