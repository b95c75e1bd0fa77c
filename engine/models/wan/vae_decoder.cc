#include "engine/models/wan/vae_decoder.h"

#include <utility>

namespace wan {
namespace {

constexpr int64_t kColors = 3;
const std::vector<int64_t> kKernel3x3x3{3, 3, 3};

int64_t InnermostWidth(const VaeConfig& config) {
  return config.decoder_base_dim * config.dim_mult.back();
}

// Channels behind a step up from `width`: 2.1 halves them where it doubles the pixels.
int64_t UpsampledWidth(const VaeConfig& config, int64_t width) {
  return config.kind == VaeKind::kWan21 ? width / 2 : width;
}

// [1, 3 p p, n, h, w] -> [3, n, h * p, w * p], contiguous. A channel is a color, a column and a row
// of the patch, in this order.
at::Tensor UnfoldPatches(const at::Tensor& x, int64_t p) {
  const int64_t n = x.size(2);
  const int64_t height = x.size(3);
  const int64_t width = x.size(4);
  return x.view({kColors, p, p, n, height, width})
      .permute({0, 3, 4, 2, 5, 1})
      .contiguous()
      .view({kColors, n, height * p, width * p});
}

}  // namespace

VaeDecoder::Stage::Stage(VaeLayerFactory& factory, const VaeConfig& config, size_t index) {
  const auto name = [&](int layer) {
    return StageLayerName(config, "decoder.upsamples", index, config.num_res_blocks + 2, layer);
  };
  const size_t last = config.dim_mult.size() - 1;
  const int64_t out = config.decoder_base_dim * config.dim_mult[last - index];
  int64_t width = InnermostWidth(config);
  if (index > 0) {
    width = UpsampledWidth(config, config.decoder_base_dim * config.dim_mult[last - index + 1]);
  }
  for (int i = 0; i < config.num_res_blocks + 1; ++i) {
    blocks_.emplace_back(factory, name(i), out, width);
    width = out;
  }
  if (index == last) return;
  // Undoes the encoder's step last - 1 - index.
  const bool temporal = config.temporal_downsample[last - 1 - index];
  has_shortcut_ = config.kind == VaeKind::kWan22;
  up_.emplace(factory, name(config.num_res_blocks + 1), UpsampledWidth(config, out), out, temporal);
}

absl::StatusOr<at::Tensor> VaeDecoder::Stage::Forward(at::Tensor x, FeatureCache& cache,
                                                      const WorkGate& gate) const {
  // Without a shortcut, as in the last and largest stage, the input goes as soon as it is used.
  const at::Tensor shortcut = has_shortcut_ ? x : at::Tensor();
  for (const ResidualBlock& block : blocks_) {
    const int64_t width = x.size(1);
    x = block.Forward(x, cache);
    if (absl::Status status = gate.Pass(WorkOfResidualBlock(width, x)); !status.ok()) return status;
  }
  return up_.has_value() ? up_->Forward(std::move(x), cache, shortcut) : x;
}

std::vector<VaeDecoder::Stage> VaeDecoder::MakeStages(VaeLayerFactory& factory,
                                                      const VaeConfig& config) {
  std::vector<Stage> stages;
  for (size_t i = 0; i < config.dim_mult.size(); ++i) stages.emplace_back(factory, config, i);
  return stages;
}

VaeDecoder::VaeDecoder(VaeLayerFactory& factory, const VaeConfig& config)
    : patch_size_(config.patch_size),
      from_latents_(factory.MakePointwise3d("conv2", config.z_dim, config.z_dim)),
      conv_in_(factory, "decoder.conv1", InnermostWidth(config), config.z_dim, kKernel3x3x3),
      middle_(factory, "decoder.middle", InnermostWidth(config)),
      stages_(MakeStages(factory, config)),
      head_(factory, "decoder.head.0", "decoder.head.2",
            kColors * config.patch_size * config.patch_size,
            config.decoder_base_dim * config.dim_mult.front()),
      slots_(factory.slots()) {}

absl::StatusOr<at::Tensor> VaeDecoder::DecodeChunk(const at::Tensor& latents, FeatureCache& cache,
                                                   const WorkGate& gate) const {
  at::Tensor x = conv_in_.Forward(from_latents_(latents.unsqueeze(0)), cache);
  x = middle_.Forward(x, cache);
  for (const Stage& stage : stages_) {
    absl::StatusOr<at::Tensor> y = stage.Forward(std::move(x), cache, gate);
    if (!y.ok()) return y.status();
    x = *std::move(y);
  }
  x = head_.Forward(std::move(x), cache);
  cache.first_chunk = false;
  return UnfoldPatches(x, patch_size_);
}

}  // namespace wan
