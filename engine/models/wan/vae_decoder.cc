#include "engine/models/wan/vae_decoder.h"

#include <algorithm>
#include <utility>

namespace wan {
namespace {

constexpr int64_t kColors = 3;
const std::vector<int64_t> kKernel3x3x3{3, 3, 3};

int64_t InnermostWidth(const VaeConfig& config) {
  return config.decoder_base_dim * config.dim_mult.back();
}

// Returns the number of channels after upsampling: VAE 2.1 halves the channels when it doubles the
// resolution.
int64_t UpsampledWidth(const VaeConfig& config, int64_t width) {
  return config.kind == VaeKind::kWan21 ? width / 2 : width;
}

// Turns patches [1, 3 p p, n, h, w] into pixels [3, n, h * p, w * p], contiguous. The input's
// channels are ordered by colour, then column, then row of the patch.
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
  // Upsampling after stage `index` mirrors the encoder's downsampling number last - 1 - index.
  const bool temporal = config.temporal_downsample[last - 1 - index];
  has_shortcut_ = config.kind == VaeKind::kWan22;
  up_.emplace(factory, name(config.num_res_blocks + 1), UpsampledWidth(config, out), out, temporal);
}

absl::Status VaeDecoder::Stage::RunBlock(size_t index, DecoderState& state, FeatureCache& cache,
                                         const WorkGate& gate) const {
  // Only a shortcut needs the stage's input later. In a stage without a shortcut, such as the last
  // and largest stage, the input is freed right after use.
  if (index == 0 && has_shortcut_) state.shortcut = state.x;
  const int64_t width = state.x.size(1);
  state.x = blocks_[index].Forward(state.x, cache);
  return gate.Pass(WorkOfResidualBlock(width, state.x));
}

void VaeDecoder::Stage::RunUp(DecoderState& state, FeatureCache& cache) const {
  state.x = up_->Forward(std::move(state.x), cache, state.shortcut);
  state.shortcut.reset();
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
      slots_(factory.slots()),
      steps_(MakeSteps(stages_, config)) {}

std::vector<VaeDecoder::Step> VaeDecoder::MakeSteps(const std::vector<Stage>& stages,
                                                    const VaeConfig& config) {
  const size_t last = config.dim_mult.size() - 1;
  const auto square = [](int64_t in, int64_t out) {
    return static_cast<double>(in) * static_cast<double>(out);
  };
  double pixels = 1;  // pixels of all frames, as a multiple of the number of latents
  int64_t width = InnermostWidth(config);
  std::vector<Step> steps;
  steps.push_back({.kind = Step::Kind::kIn, .work = 27 * square(config.z_dim, width)});
  steps.push_back({.kind = Step::Kind::kMiddle, .work = 4 * 27 * square(width, width)});
  for (size_t stage = 0; stage <= last; ++stage) {
    const int64_t out = config.decoder_base_dim * config.dim_mult[last - stage];
    for (size_t block = 0; block < stages[stage].blocks(); ++block) {
      steps.push_back({.kind = Step::Kind::kBlock,
                       .stage = stage,
                       .block = block,
                       .work = 27 * pixels * (square(width, out) + square(out, out))});
      width = out;
    }
    if (!stages[stage].enlarges()) continue;
    double work = 0;
    if (config.temporal_downsample[last - 1 - stage]) {
      work += 3 * pixels * square(width, 2 * width);
      pixels *= 2;
    }
    pixels *= 4;
    const int64_t narrower = UpsampledWidth(config, width);
    work += 9 * pixels * square(width, narrower);
    steps.push_back({.kind = Step::Kind::kUp, .stage = stage, .work = work});
    width = narrower;
  }
  const int64_t patch = kColors * config.patch_size * config.patch_size;
  steps.push_back({.kind = Step::Kind::kOut, .work = 27 * pixels * square(width, patch)});
  return steps;
}

std::vector<size_t> VaeDecoder::Divide(size_t parts) const {
  // For the best division of the first n steps into p + 1 parts, most[p][n] is the work of the
  // largest part, and begin[p][n] is the first step of the last part.
  const size_t count = steps_.size();
  std::vector<double> sums(count + 1);
  for (size_t i = 0; i < count; ++i) sums[i + 1] = sums[i] + steps_[i].work;
  std::vector<std::vector<double>> most(parts, std::vector<double>(count + 1));
  std::vector<std::vector<size_t>> begin(parts, std::vector<size_t>(count + 1));
  for (size_t n = 0; n <= count; ++n) most[0][n] = sums[n];
  for (size_t part = 1; part < parts; ++part) {
    for (size_t n = part + 1; n <= count; ++n) {
      most[part][n] = sums[count];
      for (size_t from = part; from < n; ++from) {
        const double largest = std::max(most[part - 1][from], sums[n] - sums[from]);
        if (largest >= most[part][n]) continue;
        most[part][n] = largest;
        begin[part][n] = from;
      }
    }
  }
  std::vector<size_t> firsts(parts);
  size_t end = count;
  for (size_t part = parts; part-- > 0;) end = firsts[part] = begin[part][end];
  return firsts;
}

DecoderState VaeDecoder::Begin(const at::Tensor& latents) { return {latents.unsqueeze(0), {}}; }

absl::Status VaeDecoder::Run(size_t begin, size_t end, DecoderState& state, FeatureCache& cache,
                             const WorkGate& gate) const {
  for (size_t i = begin; i < end; ++i) {
    const Step& step = steps_[i];
    absl::Status status;
    switch (step.kind) {
      case Step::Kind::kIn:
        state.x = conv_in_.Forward(from_latents_(state.x), cache);
        break;
      case Step::Kind::kMiddle:
        state.x = middle_.Forward(state.x, cache);
        break;
      case Step::Kind::kBlock:
        status = stages_[step.stage].RunBlock(step.block, state, cache, gate);
        break;
      case Step::Kind::kUp:
        stages_[step.stage].RunUp(state, cache);
        break;
      case Step::Kind::kOut:
        state.x = head_.Forward(std::move(state.x), cache);
        break;
    }
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

at::Tensor VaeDecoder::End(DecoderState state) const { return UnfoldPatches(state.x, patch_size_); }

absl::StatusOr<at::Tensor> VaeDecoder::DecodeChunk(const at::Tensor& latents, FeatureCache& cache,
                                                   const WorkGate& gate) const {
  DecoderState state = Begin(latents);
  if (absl::Status status = Run(0, steps(), state, cache, gate); !status.ok()) return status;
  NextChunk(cache);
  return End(std::move(state));
}

}  // namespace wan
