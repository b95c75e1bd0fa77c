// The properties of a model that the code knows and the checkpoint does not: modes, defaults,
// schedule. To add a family, add a file with one of the functions below and a line in
// model_family.cc.
#pragma once

#include <array>
#include <span>
#include <string_view>
#include <vector>

#include "engine/api/generation.h"
#include "engine/api/model_parts.h"
#include "engine/api/stage.h"

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

inline constexpr std::array kOneExpert = {ExpertRole::kOnly};
inline constexpr std::array kTwoExperts = {ExpertRole::kHighNoise, ExpertRole::kLowNoise};

struct ModelFamily {
  FamilyId id = FamilyId::kTi2v5b;
  bool accepts_text_only = false;
  ImageRole image = ImageRole::kNone;
  std::span<const ExpertRole> experts = kOneExpert;  // in the checkpoint's order
  StageKind preprocess = StageKind::kTi2vPreprocess;
  // Defaults of a request (upstream's configs and generate.py).
  VideoShape shape;
  int fps = 0;
  SamplingDefaults sampling;
};

// The negative prompt that all of upstream's models share (wan/configs/shared_config.py).
extern const std::string_view kUpstreamNegativePrompt;

// The description of a family; it lives for as long as the process.
const ModelFamily& FindModelFamily(FamilyId id);

// One function for each family, in the file with its name.
const ModelFamily& Ti2v5bFamily();
const ModelFamily& T2vA14bFamily();
const ModelFamily& I2vA14bFamily();

}  // namespace wan
