// What tells the model families apart: one row of facts for each, which a checkpoint does not state
// or states differently in each layout. Code asks a row, never for the id of a family.
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
  kNone,        // the model takes no image
  kFirstFrame,  // the video's first frame, kept clean while the others are denoised
  kCondition,   // channels of their own beside the latents: a mask and the encoded image
};

// The values that a request takes for fields that it does not set.
struct SamplingDefaults {
  int steps = 0;
  std::vector<double> guidance_scale;  // one, or (low noise, high noise)
  double shift = 0;
  std::string_view solver;
  // Also replaces an empty negative prompt.
  std::string_view negative_prompt;
};

// The dimensions of a published transformer that its VAE and its text encoder do not determine.
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
  std::span<const ExpertRole> experts = kOneExpert;  // in the checkpoint's order
  // With two experts, the high-noise one computes the timesteps from this fraction of 1000 upwards.
  std::optional<double> expert_boundary;
  VaeKind vae = VaeKind::kWan21;
  bool accepts_text_only = false;
  ImageRole image = ImageRole::kNone;
  StageKind preprocess = StageKind::kTi2vPreprocess;
  // Defaults of a request (upstream's configs and generate.py).
  VideoShape shape;
  int fps = 0;
  SamplingDefaults sampling;
  PublishedSize published;  // of "synthetic:NAME"

  // Returns the number of the transformer's input channels beside the latents: those of the encoded
  // image, and a mask with one channel for each frame of a latent.
  int64_t ConditionChannels(int64_t latent_channels, int64_t frames_per_latent) const;
};

// The negative prompt that all of upstream's models share (wan/configs/shared_config.py).
extern const std::string_view kUpstreamNegativePrompt;

// All rows, in the order of FamilyId. They live for as long as the process.
std::span<const ModelFamily> ModelFamilies();

// Returns the row of a family.
const ModelFamily& FindModelFamily(FamilyId id);

}  // namespace wan
