// What the code, not the checkpoint, knows of a model: modes, defaults, schedule. A new family is a
// new file with a function below and one line in model_family.cc.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "engine/api/generation.h"
#include "engine/api/model_parts.h"

namespace wan {

// What the image of a request is to a model.
enum class ImageRole {
  kNone,        // the model takes none
  kFirstFrame,  // the video's first frame, kept clean while the others are denoised
  kCondition,   // channels of their own beside the latents: a mask and the encoded image
};

// What a request takes where it says nothing.
struct SamplingDefaults {
  int steps = 0;
  std::vector<double> guidance_scale;  // one, or (low noise, high noise)
  double shift = 0;
  std::string_view solver;
  // Also what an empty negative prompt becomes.
  std::string_view negative_prompt;
};

struct ModelFamily {
  FamilyId id = FamilyId::kTi2v5b;
  bool accepts_text_only = false;
  ImageRole image = ImageRole::kNone;
  int experts = 1;  // 2: one for high noise, one for low
  // Defaults of a request (upstream's configs and generate.py).
  VideoShape shape;
  int fps = 0;
  SamplingDefaults sampling;
};

// The negative prompt that all of upstream's models share (wan/configs/shared_config.py).
extern const std::string_view kUpstreamNegativePrompt;

// The family's experts in the checkpoint's order.
std::span<const ExpertRole> ExpertRoles(const ModelFamily& family);

// The description of a family; it lives for as long as the process.
const ModelFamily& FindModelFamily(FamilyId id);

// One function a family, each in the file of its name.
const ModelFamily& Ti2v5bFamily();
const ModelFamily& T2vA14bFamily();
const ModelFamily& I2vA14bFamily();

}  // namespace wan
