// Wan2.2 I2V-A14B: two experts, VAE 2.1, image to video. Values: upstream's
// wan/configs/wan_i2v_A14B.py and shared_config.py.
#include "engine/planning/model_family.h"

namespace wan {

const ModelFamily& I2vA14bFamily() {
  static const ModelFamily family = {
      .id = FamilyId::kI2vA14b,
      .accepts_text_only = false,
      .image = ImageRole::kCondition,
      .experts = kTwoExperts,
      .preprocess = StageKind::kI2vPreprocess,
      .shape = {.width = 1280, .height = 720, .num_frames = 81},
      .fps = 16,
      .sampling = {.steps = 40,
                   .guidance_scale = {3.5, 3.5},
                   .shift = 5.0,
                   .solver = "unipc",
                   .negative_prompt = kUpstreamNegativePrompt},
  };
  return family;
}

}  // namespace wan
