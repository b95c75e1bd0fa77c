#include "engine/models/wan/vae_22_decoder.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/ops/duplicate_up_3d.h"

namespace wan {
namespace {

constexpr int64_t kColors = 3;
constexpr int64_t kSpaceFactor = 2;
const std::vector<int64_t> kKernel3x3x3{3, 3, 3};

int64_t InnermostWidth(const VaeConfig& config) {
  return config.decoder_base_dim * config.dim_mult.back();
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

Vae22Decoder::Stage::Stage(VaeLayerFactory& factory, const std::string& name, int64_t out,
                           int64_t in, int num_blocks, std::optional<bool> up)
    : time_factor_(up.value_or(false) ? 2 : 1) {
  for (int i = 0; i < num_blocks; ++i) {
    blocks_.emplace_back(factory, absl::StrCat(name, ".", i), out, i == 0 ? in : out);
  }
  if (up.has_value()) up_.emplace(factory, absl::StrCat(name, ".", num_blocks), out, *up);
}

at::Tensor Vae22Decoder::Stage::Forward(at::Tensor x, FeatureCache& cache) const {
  // The last stage is the largest and has no shortcut: its input goes as soon as it is used.
  const at::Tensor shortcut = up_.has_value() ? x : at::Tensor();
  for (const ResidualBlock& block : blocks_) x = block.Forward(x, cache);
  if (!up_.has_value()) return x;
  x = up_->Forward(std::move(x), cache);
  AddDuplicateUp3d(x, shortcut, time_factor_, kSpaceFactor);
  return x;
}

std::vector<Vae22Decoder::Stage> Vae22Decoder::MakeStages(VaeLayerFactory& factory,
                                                          const VaeConfig& config) {
  std::vector<Stage> stages;
  const size_t count = config.dim_mult.size();
  int64_t in = InnermostWidth(config);
  for (size_t i = 0; i < count; ++i) {
    const int64_t out = config.decoder_base_dim * config.dim_mult[count - 1 - i];
    // Step i up undoes the encoder's step count - 2 - i down; the last stage has none.
    const std::optional<bool> up =
        i + 1 == count ? std::nullopt
                       : std::optional<bool>(config.temporal_downsample[count - 2 - i]);
    stages.emplace_back(factory, absl::StrCat("decoder.upsamples.", i, ".upsamples"), out, in,
                        config.num_res_blocks + 1, up);
    in = out;
  }
  return stages;
}

Vae22Decoder::Vae22Decoder(VaeLayerFactory& factory, const VaeConfig& config)
    : patch_size_(config.patch_size),
      from_latents_(factory.MakePointwise3d("conv2", config.z_dim, config.z_dim)),
      conv_in_(factory, "decoder.conv1", InnermostWidth(config), config.z_dim, kKernel3x3x3),
      middle_(factory, "decoder.middle", InnermostWidth(config)),
      stages_(MakeStages(factory, config)),
      head_(factory, "decoder.head.0", "decoder.head.2",
            kColors * config.patch_size * config.patch_size,
            config.decoder_base_dim * config.dim_mult.front()),
      slots_(factory.slots()) {}

at::Tensor Vae22Decoder::DecodeChunk(const at::Tensor& latents, FeatureCache& cache) const {
  at::Tensor x = conv_in_.Forward(from_latents_(latents.unsqueeze(0)), cache);
  x = middle_.Forward(x, cache);
  for (const Stage& stage : stages_) x = stage.Forward(std::move(x), cache);
  x = head_.Forward(std::move(x), cache);
  cache.first_chunk = false;
  return UnfoldPatches(x, patch_size_);
}

}  // namespace wan
