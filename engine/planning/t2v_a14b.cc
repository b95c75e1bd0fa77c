// Wan2.2 T2V-A14B: two experts, VAE 2.1, text to video. Values: upstream's
// wan/configs/wan_t2v_A14B.py and shared_config.py.
#include "engine/planning/model_family.h"

namespace wan {

const ModelFamily& T2vA14bFamily() {
  static const ModelFamily family = {
      .id = FamilyId::kT2vA14b,
      .accepts_text_only = true,
      .image = ImageRole::kNone,
      .experts = kTwoExperts,
      .preprocess = StageKind::kT2vPreprocess,
      .shape = {.width = 1280, .height = 720, .num_frames = 81},
      .fps = 16,
      .sampling = {.steps = 40,
                   .guidance_scale = {3.0, 4.0},
                   .shift = 12.0,
                   .solver = "unipc",
                   .negative_prompt = kUpstreamNegativePrompt},
  };
  return family;
}

}  // namespace wan
