// Wan2.2 TI2V-5B: one expert, VAE 2.2, text and image to video. Values: upstream's
// wan/configs/wan_ti2v_5B.py and shared_config.py.
#include "engine/planning/model_family.h"

namespace wan {

const ModelFamily& Ti2v5bFamily() {
  static const ModelFamily family = {
      .id = FamilyId::kTi2v5b,
      .accepts_text_only = true,
      .image = ImageRole::kFirstFrame,
      .preprocess = StageKind::kTi2vPreprocess,
      .shape = {.width = 1280, .height = 704, .num_frames = 121},
      .fps = 24,
      .sampling = {.steps = 50,
                   .guidance_scale = {5.0},
                   .shift = 5.0,
                   .solver = "unipc",
                   .negative_prompt = kUpstreamNegativePrompt},
  };
  return family;
}

}  // namespace wan
