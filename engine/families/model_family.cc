#include "engine/families/model_family.h"

#include <algorithm>
#include <iterator>

namespace wan {

const std::string_view kUpstreamNegativePrompt =
    "色调艳丽，过曝，静态，细节模糊不清，字幕，风格，作品，画作，画面，静止，整体发灰，最差质"
    "量，低质量，"
    "JPEG压缩残留，丑陋的，残缺的，多余的手指，画得不好的手部，画得不好的脸部，畸形的，毁容的"
    "，形态畸形的肢体，"
    "手指融合，静止不动的画面，杂乱的背景，三条腿，背景人很多，倒着走";

// The values come from upstream's wan/configs/wan_{ti2v_5B,t2v_A14B,i2v_A14B}.py and
// shared_config.py at commit 42bf4cf, and for Wan2.1 from its configs and the defaults of its
// generate.py at commit 9737cba. The names that diffusers uses come from its conversions of
// these models. A row for each family. NOLINTNEXTLINE(readability-function-size)
std::span<const ModelFamily> ModelFamilies() {
  static const ModelFamily rows[] = {
      // Wan2.2 TI2V-5B makes videos from text, or from text and an image.
      {.id = FamilyId::kTi2v5b,
       .upstream_type = "ti2v",
       .diffusers_class = "WanPipeline",
       .experts = kOneExpert,
       .vae = VaeKind::kWan22,
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
       .reuse = {.retained_shares = {0.2}},
       .text_ratios = PublishedTi2vTextRatios,
       .image_ratios = PublishedTi2vImageRatios,
       .published = {.dim = 3072, .ffn_dim = 14336, .num_heads = 24, .num_layers = 30}},
      // Wan2.2 T2V-A14B makes videos from text.
      {.id = FamilyId::kT2vA14b,
       .upstream_type = "t2v",
       .diffusers_class = "WanPipeline",
       .experts = kTwoExperts,
       .expert_boundary = 0.875,
       .vae = VaeKind::kWan21,
       .accepts_text_only = true,
       .image = ImageRole::kNone,
       .preprocess = StageKind::kT2vPreprocess,
       .shape = {.width = 1280, .height = 720, .num_frames = 81},
       .fps = 16,
       .sampling = {.steps = 40,
                    .guidance_scale = {3.0, 4.0},
                    .shift = 12.0,
                    .solver = "unipc",
                    .negative_prompt = kUpstreamNegativePrompt},
       .reuse = {.retained_shares = {0.4, 0.4}},
       .text_ratios = PublishedT2vRatios,
       .image_ratios = PublishedT2vRatios,
       .published = {.dim = 5120, .ffn_dim = 13824, .num_heads = 40, .num_layers = 40}},
      // Wan2.2 I2V-A14B makes videos from an image and text.
      {.id = FamilyId::kI2vA14b,
       .upstream_type = "i2v",
       .diffusers_class = "WanImageToVideoPipeline",
       .experts = kTwoExperts,
       .expert_boundary = 0.9,
       .vae = VaeKind::kWan21,
       .accepts_text_only = false,
       .image = ImageRole::kCondition,
       .preprocess = StageKind::kI2vPreprocess,
       .shape = {.width = 1280, .height = 720, .num_frames = 81},
       .fps = 16,
       .sampling = {.steps = 40,
                    .guidance_scale = {3.5, 3.5},
                    .shift = 5.0,
                    .solver = "unipc",
                    .negative_prompt = kUpstreamNegativePrompt},
       .reuse = {.retained_shares = {1, 0.1}},
       .text_ratios = PublishedI2vRatios,
       .image_ratios = PublishedI2vRatios,
       .published = {.dim = 5120, .ffn_dim = 13824, .num_heads = 40, .num_layers = 40}},
      // Wan2.1 T2V-1.3B makes videos from text.
      {.id = FamilyId::kWan21T2v1b,
       .upstream_type = "t2v",
       .diffusers_class = "WanPipeline",
       .experts = kOneExpert,
       .vae = VaeKind::kWan21,
       .accepts_text_only = true,
       .image = ImageRole::kNone,
       .preprocess = StageKind::kT2vPreprocess,
       .shape = {.width = 832, .height = 480, .num_frames = 81},
       .fps = 16,
       .sampling = {.steps = 50,
                    .guidance_scale = {5.0},
                    .shift = 5.0,
                    .solver = "unipc",
                    .negative_prompt = kUpstreamNegativePrompt},
       .reuse = {.retained_shares = {0.2}},
       .text_ratios = PublishedWan21T2v1bRatios,
       .image_ratios = PublishedWan21T2v1bRatios,
       .published = {.dim = 1536, .ffn_dim = 8960, .num_heads = 12, .num_layers = 30}},
      // Wan2.1 T2V-14B makes videos from text, with the dimensions of one expert of Wan2.2
      // T2V-A14B.
      {.id = FamilyId::kWan21T2v14b,
       .upstream_type = "t2v",
       .diffusers_class = "WanPipeline",
       .experts = kOneExpert,
       .vae = VaeKind::kWan21,
       .accepts_text_only = true,
       .image = ImageRole::kNone,
       .preprocess = StageKind::kT2vPreprocess,
       .shape = {.width = 1280, .height = 720, .num_frames = 81},
       .fps = 16,
       .sampling = {.steps = 50,
                    .guidance_scale = {5.0},
                    .shift = 5.0,
                    .solver = "unipc",
                    .negative_prompt = kUpstreamNegativePrompt},
       .reuse = {.retained_shares = {0.2}},
       .text_ratios = PublishedWan21T2v14bRatios,
       .image_ratios = PublishedWan21T2v14bRatios,
       .published = {.dim = 5120, .ffn_dim = 13824, .num_heads = 40, .num_layers = 40}},
  };
  static_assert(std::size(rows) == kFamilyIds.size(), "a family has no row");
  return rows;
}

int64_t ModelFamily::ConditionChannels(int64_t latent_channels, int64_t frames_per_latent) const {
  return image == ImageRole::kCondition ? latent_channels + frames_per_latent : 0;
}

const ModelFamily& FindModelFamily(FamilyId id) {
  const std::span<const ModelFamily> families = ModelFamilies();
  return *std::find_if(families.begin(), families.end(),
                       [id](const ModelFamily& family) { return family.id == id; });
}

}  // namespace wan
