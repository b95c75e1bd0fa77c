// What the code, not the checkpoint, knows of a model: modes, defaults, schedule. A new family is a
// new file with a function below and one line in model_family.cc.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "engine/api/generation.h"

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
  std::string_view name;  // as Checkpoint::model() says it: "ti2v-5b"
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

// The experts' names in StepPlan::expert, in the checkpoint's order: "only", or "high" and "low".
std::span<const std::string_view> ExpertNames(const ModelFamily& family);

// Null for an unknown name.
const ModelFamily* FindModelFamily(std::string_view name);

// One function a family, each in the file of its name.
const ModelFamily& Ti2v5bFamily();
const ModelFamily& T2vA14bFamily();
const ModelFamily& I2vA14bFamily();

}  // namespace wan
