// The facts in which the model families differ, if checkpoints do not state them or state them
// differently in each layout. Each family has one row of facts. Code reads a family's row; no code
// tests which family it is.
//
// To add a family, add its line to engine/api/model_families.def and its row to model_family.cc.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "engine/api/generation.h"
#include "engine/api/model_parts.h"
#include "engine/api/stage.h"
#include "engine/families/step_ratios.h"
#include "engine/families/vae_kind.h"

namespace wan {

// How a model uses a request's image.
enum class ImageRole {
  kNone,        // the model takes no image
  kFirstFrame,  // the image becomes the first frame, kept clean while the other frames are denoised
  kCondition,   // the model gets more channels: a mask and the encoded image
};

// Default values for fields of a request.
struct SamplingDefaults {
  int steps = 0;
  std::vector<double> guidance_scale;  // one value, or two: for low noise, then for high noise
  double shift = 0;
  std::string_view solver;
  // The negative prompt of requests whose negative prompt is empty.
  std::string_view negative_prompt;
};

// The dimensions of a published transformer that do not follow from its VAE and its text encoder.
struct PublishedSize {
  int64_t dim = 0;
  int64_t ffn_dim = 0;
  int64_t num_heads = 0;
  int64_t num_layers = 0;
};

inline constexpr std::array kOneExpert = {ExpertRole::kOnly};
inline constexpr std::array kTwoExperts = {ExpertRole::kHighNoise, ExpertRole::kLowNoise};

struct ModelFamily {
  FamilyId id = FamilyId::kTi2v5b;
  std::string_view upstream_type;    // "model_type" in config.json of upstream's layout
  std::string_view diffusers_class;  // "_class_name" in model_index.json of diffusers' layout
  std::span<const ExpertRole> experts = kOneExpert;  // the experts, in the checkpoint's order
  // If there are two experts, the high-noise expert computes timesteps of at least this fraction of
  // 1000.
  std::optional<double> expert_boundary;
  VaeKind vae = VaeKind::kWan21;
  bool accepts_text_only = false;
  ImageRole image = ImageRole::kNone;
  StageKind preprocess = StageKind::kTi2vPreprocess;
  // Defaults for requests, from upstream's configs and generate.py.
  VideoShape shape;
  int fps = 0;
  SamplingDefaults sampling;
  // The rule for reusing steps in fast jobs, and the ratios of the published weights, for jobs
  // without and with an image.
  ReuseRule reuse;
  const StepRatios& (*text_ratios)() = nullptr;
  const StepRatios& (*image_ratios)() = nullptr;
  PublishedSize published;  // the size of the model "synthetic:NAME"

  // Returns how many input channels the transformer has in addition to the latents: the channels of
  // the encoded image, and one mask channel for each video frame of a latent frame.
  int64_t ConditionChannels(int64_t latent_channels, int64_t frames_per_latent) const;
};

// The negative prompt that upstream uses for all models (wan/configs/shared_config.py).
extern const std::string_view kUpstreamNegativePrompt;

// Returns all rows, in the order of FamilyId. The rows live until the process ends.
std::span<const ModelFamily> ModelFamilies();

// Returns the row of the family `id`.
const ModelFamily& FindModelFamily(FamilyId id);

}  // namespace wan
