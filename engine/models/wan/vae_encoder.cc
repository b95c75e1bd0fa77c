#include "engine/models/wan/vae_encoder.h"

#include "engine/ops/average_down_3d.h"

namespace wan {
namespace {

constexpr int64_t kColors = 3;
const std::vector<int64_t> kKernel3x3x3{3, 3, 3};

int64_t InnermostWidth(const VaeConfig& config) { return config.base_dim * config.dim_mult.back(); }

// [3, n, H, W] -> [1, 3 p p, n, H / p, W / p]. The result's channels are ordered by colour, then
// column, then row of the patch.
at::Tensor FoldPatches(const at::Tensor& frames, int64_t p) {
  const int64_t n = frames.size(1);
  const int64_t height = frames.size(2) / p;
  const int64_t width = frames.size(3) / p;
  return frames.reshape({kColors, n, height, p, width, p})
      .permute({0, 5, 3, 1, 2, 4})
      .reshape({1, kColors * p * p, n, height, width});
}

}  // namespace

VaeEncoder::Stage::Stage(VaeLayerFactory& factory, const VaeConfig& config, size_t index)
    : averages_(config.kind == VaeKind::kWan22),
      out_channels_(config.base_dim * config.dim_mult[index]) {
  const auto name = [&](int layer) {
    return StageLayerName(config, "encoder.downsamples", index, config.num_res_blocks + 1, layer);
  };
  int64_t width = config.base_dim * (index == 0 ? 1 : config.dim_mult[index - 1]);
  for (int i = 0; i < config.num_res_blocks; ++i) {
    blocks_.emplace_back(factory, name(i), out_channels_, width);
    width = out_channels_;
  }
  if (index + 1 == config.dim_mult.size()) return;
  const bool temporal = config.temporal_downsample[index];
  time_factor_ = temporal ? 2 : 1;
  space_factor_ = 2;
  down_.emplace(factory, name(config.num_res_blocks), out_channels_, temporal);
}

absl::StatusOr<at::Tensor> VaeEncoder::Stage::Forward(const at::Tensor& x, FeatureCache& cache,
                                                      const WorkGate& gate) const {
  at::Tensor y = x;
  for (const ResidualBlock& block : blocks_) {
    const int64_t width = y.size(1);
    y = block.Forward(y, cache);
    if (absl::Status status = gate.Pass(WorkOfResidualBlock(width, y)); !status.ok()) return status;
  }
  if (down_.has_value()) y = down_->Forward(y, cache);
  if (!averages_) return y;
  return y.add_(AverageDown3d(x, out_channels_, time_factor_, space_factor_));
}

std::vector<VaeEncoder::Stage> VaeEncoder::MakeStages(VaeLayerFactory& factory,
                                                      const VaeConfig& config) {
  std::vector<Stage> stages;
  for (size_t i = 0; i < config.dim_mult.size(); ++i) stages.emplace_back(factory, config, i);
  return stages;
}

VaeEncoder::VaeEncoder(VaeLayerFactory& factory, const VaeConfig& config)
    : patch_size_(config.patch_size),
      conv_in_(factory, "encoder.conv1", config.base_dim,
               kColors * config.patch_size * config.patch_size, kKernel3x3x3),
      stages_(MakeStages(factory, config)),
      middle_(factory, "encoder.middle", InnermostWidth(config)),
      head_(factory, "encoder.head.0", "encoder.head.2", 2 * config.z_dim, InnermostWidth(config)),
      moments_(factory.MakePointwise3d("conv1", 2 * config.z_dim, 2 * config.z_dim)),
      slots_(factory.slots()) {}

absl::StatusOr<at::Tensor> VaeEncoder::EncodeChunk(const at::Tensor& frames, FeatureCache& cache,
                                                   const WorkGate& gate) const {
  at::Tensor x = conv_in_.Forward(FoldPatches(frames, patch_size_), cache);
  for (const Stage& stage : stages_) {
    absl::StatusOr<at::Tensor> y = stage.Forward(x, cache, gate);
    if (!y.ok()) return y.status();
    x = *std::move(y);
  }
  x = head_.Forward(middle_.Forward(x, cache), cache);
  cache.first_chunk = false;
  return moments_(x).squeeze(0).chunk(2, /*dim=*/0)[0];
}

}  // namespace wan
