#include "engine/models/wan/vae_22_encoder.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/ops/average_down_3d.h"

namespace wan {
namespace {

constexpr int64_t kColors = 3;
const std::vector<int64_t> kKernel3x3x3{3, 3, 3};

int64_t InnermostWidth(const VaeConfig& config) { return config.base_dim * config.dim_mult.back(); }

// [3, n, H, W] -> [1, 3 p p, n, H / p, W / p]. A channel of the result is a color, a column and a
// row of the patch, in this order.
at::Tensor FoldPatches(const at::Tensor& frames, int64_t p) {
  const int64_t n = frames.size(1);
  const int64_t height = frames.size(2) / p;
  const int64_t width = frames.size(3) / p;
  return frames.reshape({kColors, n, height, p, width, p})
      .permute({0, 5, 3, 1, 2, 4})
      .reshape({1, kColors * p * p, n, height, width});
}

}  // namespace

Vae22Encoder::Stage::Stage(VaeLayerFactory& factory, const std::string& name, int64_t out,
                           int64_t in, int num_blocks, std::optional<bool> down)
    : out_channels_(out),
      time_factor_(down.value_or(false) ? 2 : 1),
      space_factor_(down.has_value() ? 2 : 1) {
  for (int i = 0; i < num_blocks; ++i) {
    blocks_.emplace_back(factory, absl::StrCat(name, ".", i), out, i == 0 ? in : out);
  }
  if (down.has_value()) down_.emplace(factory, absl::StrCat(name, ".", num_blocks), out, *down);
}

at::Tensor Vae22Encoder::Stage::Forward(const at::Tensor& x, FeatureCache& cache) const {
  at::Tensor y = x;
  for (const ResidualBlock& block : blocks_) y = block.Forward(y, cache);
  if (down_.has_value()) y = down_->Forward(y, cache);
  return y.add_(AverageDown3d(x, out_channels_, time_factor_, space_factor_));
}

std::vector<Vae22Encoder::Stage> Vae22Encoder::MakeStages(VaeLayerFactory& factory,
                                                          const VaeConfig& config) {
  std::vector<Stage> stages;
  int64_t in = config.base_dim;
  for (size_t i = 0; i < config.dim_mult.size(); ++i) {
    const int64_t out = config.base_dim * config.dim_mult[i];
    const bool last = i + 1 == config.dim_mult.size();
    stages.emplace_back(factory, absl::StrCat("encoder.downsamples.", i, ".downsamples"), out, in,
                        config.num_res_blocks,
                        last ? std::nullopt : std::optional<bool>(config.temporal_downsample[i]));
    in = out;
  }
  return stages;
}

Vae22Encoder::Vae22Encoder(VaeLayerFactory& factory, const VaeConfig& config)
    : patch_size_(config.patch_size),
      conv_in_(factory, "encoder.conv1", config.base_dim,
               kColors * config.patch_size * config.patch_size, kKernel3x3x3),
      stages_(MakeStages(factory, config)),
      middle_(factory, "encoder.middle", InnermostWidth(config)),
      head_(factory, "encoder.head.0", "encoder.head.2", 2 * config.z_dim, InnermostWidth(config)),
      moments_(factory.MakePointwise3d("conv1", 2 * config.z_dim, 2 * config.z_dim)),
      slots_(factory.slots()) {}

at::Tensor Vae22Encoder::EncodeChunk(const at::Tensor& frames, FeatureCache& cache) const {
  at::Tensor x = conv_in_.Forward(FoldPatches(frames, patch_size_), cache);
  for (const Stage& stage : stages_) x = stage.Forward(x, cache);
  x = head_.Forward(middle_.Forward(x, cache), cache);
  cache.first_chunk = false;
  return moments_(x).squeeze(0).chunk(2, /*dim=*/0)[0];
}

}  // namespace wan
