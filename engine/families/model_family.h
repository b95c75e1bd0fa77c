// Facts that tell the model families apart and that checkpoints do not state, or state differently
// in each layout: one row per family. Code reads a row and never tests the id of a family.
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
#include "engine/families/vae_kind.h"

namespace wan {

// How a model uses the image of a request.
enum class ImageRole {
  kNone,        // not at all
  kFirstFrame,  // as the video's first frame, kept clean while the others are denoised
  kCondition,   // as extra channels beside the latents: a mask and the encoded image
};

// Defaults for the fields of a request.
struct SamplingDefaults {
  int steps = 0;
  std::vector<double> guidance_scale;  // one value, or (low noise, high noise)
  double shift = 0;
  std::string_view solver;
  // Also used for an empty negative prompt.
  std::string_view negative_prompt;
};

// The dimensions of a published transformer that do not follow from its VAE and text encoder.
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
  std::span<const ExpertRole> experts = kOneExpert;  // experts in the checkpoint's order
  // With two experts, the high-noise one computes timesteps from this fraction of 1000 upwards.
  std::optional<double> expert_boundary;
  VaeKind vae = VaeKind::kWan21;
  bool accepts_text_only = false;
  ImageRole image = ImageRole::kNone;
  StageKind preprocess = StageKind::kTi2vPreprocess;
  // Request defaults, from upstream's configs and generate.py.
  VideoShape shape;
  int fps = 0;
  SamplingDefaults sampling;
  PublishedSize published;  // size of "synthetic:NAME"

  // Returns how many input channels the transformer has besides the latents: those of the encoded
  // image, and one mask channel per frame of a latent frame.
  int64_t ConditionChannels(int64_t latent_channels, int64_t frames_per_latent) const;
};

// The negative prompt that upstream uses for all models (wan/configs/shared_config.py).
extern const std::string_view kUpstreamNegativePrompt;

// All rows, in the order of FamilyId; they live until the process ends.
std::span<const ModelFamily> ModelFamilies();

// Returns the row of a family.
const ModelFamily& FindModelFamily(FamilyId id);

}  // namespace wan
