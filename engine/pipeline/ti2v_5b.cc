// Wan2.2 TI2V-5B: one expert, VAE 2.2, text and image to video. Values: upstream's
// wan/configs/wan_ti2v_5B.py and shared_config.py.
#include "engine/pipeline/model_family.h"

namespace wan {

const ModelFamily& Ti2v5bFamily() {
  static const ModelFamily family = {
      .name = "ti2v-5b",
      .accepts_text_only = true,
      .accepts_image = true,
      .shape = {.width = 1280, .height = 704, .num_frames = 121},
      .fps = 24,
      .steps = 50,
      .guidance_scale = {5.0},
      .shift = 5.0,
      .solver = "unipc",
      .negative_prompt =
          "色调艳丽，过曝，静态，细节模糊不清，字幕，风格，作品，画作，画面，静止，整体发灰，最差质"
          "量，低质量，"
          "JPEG压缩残留，丑陋的，残缺的，多余的手指，画得不好的手部，画得不好的脸部，畸形的，毁容的"
          "，形态畸形的肢体，"
          "手指融合，静止不动的画面，杂乱的背景，三条腿，背景人很多，倒着走",
  };
  return family;
}

}  // namespace wan
