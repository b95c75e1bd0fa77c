#include "engine/planning/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "engine/costs/wan/transformer_cost.h"
#include "engine/costs/wan/vae_cost.h"
#include "tests/engine/planning/plan_support.h"

namespace wan {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;

TEST(PlanTest, UnsetFieldsTakeUpstreamsDefaults) {
  const auto plan = Plan(TextRequest());
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->shape, (VideoShape{1280, 704, 121}));
  EXPECT_EQ(plan->request.steps, 50);
  EXPECT_EQ(plan->request.fps, 24);
  EXPECT_EQ(plan->request.guidance_scale, std::vector<double>{5.0});
  EXPECT_EQ(plan->request.shift, 5.0);
  EXPECT_EQ(plan->request.solver, "unipc");
  EXPECT_EQ(plan->request.seed, 77);
  EXPECT_EQ(*plan->request.negative_prompt, kUpstreamNegativePrompt);
  EXPECT_THAT(plan->latent_shape, ElementsAre(48, 31, 44, 80));
  EXPECT_EQ(plan->tokens, 27280);
  EXPECT_FALSE(plan->image_to_video);
}

TEST(PlanTest, ACheckpointsOwnDefaultsComeBeforeItsFamilys) {
  PlannedModel model = RealModel();
  model.generation_defaults = GenerationDefaults{256, 128, 33, 16, 20, {4}, 3.0, "euler", "grey"};
  const auto plan = PlanOn(model, TextRequest());
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->shape, (VideoShape{256, 128, 33}));
  EXPECT_EQ(plan->request.fps, 16);
  EXPECT_EQ(plan->request.steps, 20);
  EXPECT_EQ(plan->request.guidance_scale, std::vector<double>{4.0});
  EXPECT_EQ(plan->request.shift, 3.0);
  EXPECT_EQ(plan->request.solver, "euler");
  EXPECT_EQ(plan->request.negative_prompt, "grey");

  // The request still wins, and what the checkpoint leaves open is the family's.
  GenerationRequest request = TextRequest();
  request.steps = 7;
  model.generation_defaults = GenerationDefaults{};
  model.generation_defaults->steps = 20;
  const auto asked = PlanOn(model, request);
  ASSERT_TRUE(asked.ok()) << asked.status();
  EXPECT_EQ(asked->request.steps, 7);
  EXPECT_EQ(asked->shape, (VideoShape{1280, 704, 121}));
}

// DIFFERENCES 9: upstream replaces an empty negative prompt by its default text.
TEST(PlanTest, EmptyNegativePromptIsTheDefaultOne) {
  GenerationRequest request = TextRequest();
  request.negative_prompt = "";
  EXPECT_EQ(*Plan(request)->request.negative_prompt, kUpstreamNegativePrompt);
  request.negative_prompt = "grey";
  EXPECT_EQ(*Plan(request)->request.negative_prompt, "grey");
}

TEST(PlanTest, NegativeSeedIsDrawn) {
  GenerationRequest request = TextRequest();
  request.seed = -1;
  EXPECT_EQ(Plan(request)->request.seed, 77);
  request.seed = 0;
  EXPECT_EQ(Plan(request)->request.seed, 0);
}

TEST(PlanTest, TransformersInEightBitsComputeNoExactVideo) {
  PlannedModel model = RealModel();
  EXPECT_EQ(PlanOn(model, TextRequest())->request.quality, Quality::kExact);
  model.options.eight_bit_weights.text_encoder = true;
  EXPECT_EQ(PlanOn(model, TextRequest())->request.quality, Quality::kExact);
  model.options.eight_bit_weights.transformers = true;
  const auto plan = PlanOn(model, TextRequest());
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->request.quality, Quality::kHigh);
  EXPECT_TRUE(plan->eight_bits);
  EXPECT_EQ(plan->eight_bit_weights, model.options.eight_bit_weights);
  GenerationRequest request = TextRequest();
  request.quality = Quality::kFast;
  EXPECT_TRUE(PlanOn(model, request).ok());
  request.quality = Quality::kExact;
  const auto refused = PlanOn(model, request);
  EXPECT_THAT(FieldsOf(refused.status()), ElementsAre("quality"));
  EXPECT_EQ(FieldViolationsOf(refused.status()).front().description,
            "is exact; must be high or fast, because this server keeps the transformers' weights "
            "in 8 bits (eight_bit_weights)");
}

TEST(PlanTest, TheRateFactorIsTheRequestsElseTheServers) {
  PlannedModel model = RealModel();
  model.options.h264.crf = 22;
  GenerationRequest request = TextRequest();
  EXPECT_EQ(PlanOn(model, request)->request.h264_crf, 22);
  for (const int crf : {kBestH264Crf, kWorstH264Crf}) {
    request.h264_crf = crf;
    EXPECT_EQ(PlanOn(model, request)->request.h264_crf, crf);
  }
  for (const int crf : {kBestH264Crf - 1, kWorstH264Crf + 1}) {
    request.h264_crf = crf;
    EXPECT_THAT(FieldsOf(PlanOn(model, request).status()), testing::ElementsAre("h264_crf"));
  }
}

TEST(PlanTest, OnlyAnMp4CanBeWatchedWhileItIsMade) {
  GenerationRequest request = TextRequest();
  request.outputs.clear();
  const auto ordinary = Plan(request);
  request.progressive = true;
  auto plan = Plan(request);
  ASSERT_TRUE(ordinary.ok() && plan.ok()) << plan.status();
  EXPECT_EQ(plan->peak_host_bytes, ordinary->peak_host_bytes);
  EXPECT_EQ(plan->stages.size(), ordinary->stages.size());
  request.outputs = {OutputKind::kLosslessMkv, OutputKind::kMp4};
  EXPECT_TRUE(Plan(request).ok());
  for (const OutputKind kind : {OutputKind::kLosslessMkv, OutputKind::kLatents}) {
    request.outputs = {kind};
    const absl::Status refused = Plan(request).status();
    EXPECT_THAT(FieldsOf(refused), testing::ElementsAre("progressive"));
    EXPECT_THAT(std::string(refused.message()),
                testing::HasSubstr("is true; must be false for a request without mp4"));
  }
}

TEST(PlanTest, EveryViolationIsNamedAtOnce) {
  GenerationRequest request = TextRequest();
  request.width = 100;
  request.height = 8192;
  request.num_frames = 6;
  request.fps = 0;
  request.h264_crf = 52;
  request.steps = 1001;
  request.guidance_scale = {std::numeric_limits<double>::quiet_NaN(), 3};
  request.shift = 0;
  request.solver = "heun";
  request.preview_interval = -1;
  request.loras = {{"style", 1}, {"style", 11}, {"nobody", std::nan("")}};
  PlannedModel model = RealModel();
  model.loras = {{"light", {std::nullopt}}, {"style", {LoraFootprint{}}}};
  InspectedRequest inspected;
  inspected.prompt_tokens = 1;
  inspected.negative_prompt_tokens = 600;
  const auto plan = PlanOn(model, request, inspected);
  ASSERT_EQ(plan.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(FieldsOf(plan.status()),
              testing::UnorderedElementsAre("prompt", "negative_prompt", "width", "height",
                                            "num_frames", "fps", "h264_crf", "steps",
                                            "guidance_scale", "guidance_scale[0]", "shift",
                                            "solver", "preview_interval", "loras[1].name",
                                            "loras[1].scale", "loras[2].name", "loras[2].scale"));
  EXPECT_THAT(
      std::string(plan.status().message()),
      testing::HasSubstr("'nobody' is not a LoRA of model 'm', whose LoRAs are: light, style"));
}

TEST(PlanTest, TheQualityIsTheRequestsElseTheServers) {
  PlannedModel model = RealModel();
  EXPECT_EQ(PlanOn(model, TextRequest())->request.quality, Quality::kExact);
  EXPECT_FALSE(PlanOn(model, TextRequest())->eight_bits);
  model.options.quality = Quality::kHigh;
  EXPECT_EQ(PlanOn(model, TextRequest())->request.quality, Quality::kHigh);
  EXPECT_TRUE(PlanOn(model, TextRequest())->eight_bits);
  GenerationRequest request = TextRequest();
  request.quality = Quality::kExact;
  EXPECT_FALSE(PlanOn(model, request)->eight_bits);
}

TEST(PlanTest, StepsOfOtherQualitiesAreToldApart) {
  GenerationRequest request = TextRequest();
  for (const auto& [quality, method] : {std::pair(Quality::kExact, StageMethod::kExact),
                                        std::pair(Quality::kHigh, StageMethod::kEightBits)}) {
    request.quality = quality;
    const auto plan = Plan(request);
    ASSERT_TRUE(plan.ok()) << plan.status();
    EXPECT_EQ(StageOf(*plan, "Step_0_Inference").method, method);
    EXPECT_EQ(StageOf(*plan, "VAE_Decoding").method, StageMethod::kExact);
  }
}

TEST(PlanTest, TheTinyDecoderIsForModelsThatHaveOne) {
  PlannedModel model = RealModel();
  GenerationRequest request = TextRequest();
  EXPECT_EQ(PlanOn(model, request)->request.decoder, Decoder::kFull);
  request.decoder = Decoder::kTiny;
  const auto refused = PlanOn(model, request);
  EXPECT_THAT(FieldsOf(refused.status()), ElementsAre("decoder"));
  EXPECT_EQ(FieldViolationsOf(refused.status()).front().description,
            "is tiny; must be full, because model '" + request.model +
                "' was loaded without the file of a tiny decoder (the part tiny_decoder, for "
                "example taew2_2.safetensors)");
  model.tiny_decoder_error = absl::DataLossError("/m/taew2_2.safetensors: is cut");
  EXPECT_EQ(FieldViolationsOf(PlanOn(model, request).status()).front().description,
            "is tiny; must be full, because the tiny decoder of model '" + request.model +
                "' cannot be used: /m/taew2_2.safetensors: is cut");
  model.tiny_decoder_error = absl::OkStatus();
  model.vae.tiny_decoder =
      TinyDecoderConfig{.z_dim = 48, .widths = {256, 128, 64, 64}, .patch_size = 2};
  const auto tiny = PlanOn(model, request);
  ASSERT_TRUE(tiny.ok()) << tiny.status();
  request.decoder = Decoder::kFull;
  const auto full = PlanOn(model, request);
  const StagePlan small = StageOf(*tiny, "VAE_Decoding");
  const StagePlan large = StageOf(*full, "VAE_Decoding");
  EXPECT_EQ(small.method, StageMethod::kTinyDecoder);
  EXPECT_EQ(large.method, StageMethod::kExact);
  EXPECT_LT(*small.flops, *large.flops / 10);
  EXPECT_LE(small.activation_bytes, large.activation_bytes);
}

TEST(PlanTest, SomeBlocksStayExact) {
  PlannedModel model = RealModel();
  model.options.quality_exact_blocks = ExactBlocks::Parse("0,last").value();
  EXPECT_THAT(PlanOn(model, TextRequest())->exact_blocks, testing::IsEmpty());
  model.options.quality = Quality::kHigh;
  const int last = static_cast<int>(model.transformer.num_layers) - 1;
  const auto plan = PlanOn(model, TextRequest());
  EXPECT_THAT(plan->exact_blocks, ElementsAre(0, last));
  EXPECT_EQ(StageOf(*plan, "Step_0_Inference").exact_blocks, 2);
  EXPECT_EQ(StageOf(*plan, "VAE_Decoding").exact_blocks, 0);
}

TEST(PlanTest, AQualityThatTheDeviceDoesNotHaveIsRefused) {
  PlannedModel model = RealModel();
  model.no_eight_bits = "on this device, whose compute capability 8.0 has no products of 8 bits";
  EXPECT_TRUE(PlanOn(model, TextRequest()).ok());
  GenerationRequest request = TextRequest();
  request.quality = Quality::kHigh;
  const absl::StatusOr<GenerationPlan> plan = PlanOn(model, request);
  ASSERT_THAT(FieldsOf(plan.status()), ElementsAre("quality"));
  EXPECT_EQ(
      FieldViolationsOf(plan.status()).front().description,
      "is high; must be exact on this device, whose compute capability 8.0 has no products of "
      "8 bits");
}

TEST(PlanTest, LorasStayAsTheyWereAskedFor) {
  PlannedModel model = RealModel();
  GenerationRequest request = TextRequest();
  for (size_t i = 0; i <= kMaxLorasOfRequest; ++i) {
    model.loras.push_back({"l" + std::to_string(i), {LoraFootprint{}}});
    request.loras.push_back({model.loras.back().name, -10});
  }
  EXPECT_THAT(FieldsOf(PlanOn(model, request).status()), testing::ElementsAre("loras"));
  request.loras.pop_back();
  const auto plan = PlanOn(model, request);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->request.loras, request.loras);
  EXPECT_THAT(FieldsOf(Plan(request).status()), testing::SizeIs(kMaxLorasOfRequest))
      << "of a model without LoRAs";
}

TEST(PlanTest, ViolationsSayWhatWouldBeRight) {
  GenerationRequest request = TextRequest();
  request.width = 1280;
  request.height = 720;
  request.num_frames = 80;
  EXPECT_THAT(
      FieldViolationsOf(Plan(request).status()),
      ElementsAre(
          FieldViolation{
              "height", "is 720; must be a multiple of 32 from 32 to 4096, for example 704 or 736"},
          FieldViolation{"num_frames",
                         "is 80; must be 4n+1 from 1 to 4093, for example 77 or 81"}));
}

// Beyond the ends there is one neighbour.
TEST(PlanTest, TheNearestSizesAreThoseThatAreAccepted) {
  const auto example = [](int width, int frames) {
    std::string examples;
    for (const FieldViolation& violation :
         FieldViolationsOf(Plan(SizedRequest(width, 64, frames)).status())) {
      const size_t at = violation.description.find("for example ");
      examples += violation.field + " " + violation.description.substr(at + 12) + ". ";
    }
    return examples;
  };
  EXPECT_EQ(example(0, 1), "width 32. ");
  EXPECT_EQ(example(-64, 1), "width 32. ");
  EXPECT_EQ(example(33, 1), "width 32 or 64. ");
  EXPECT_EQ(example(4095, 1), "width 4064 or 4096. ");
  EXPECT_EQ(example(4097, 1), "width 4096. ");
  EXPECT_EQ(example(2'147'483'647, 1), "width 4096. ");
  EXPECT_EQ(example(64, 0), "num_frames 1. ");
  EXPECT_EQ(example(64, 2), "num_frames 1 or 5. ");
  EXPECT_EQ(example(64, 4092), "num_frames 4089 or 4093. ");
  EXPECT_EQ(example(64, 4097), "num_frames 4093. ");
  EXPECT_EQ(example(64, -2'147'483'647), "num_frames 1. ");
}

TEST(PlanTest, ProblemsFoundWhileReadingArePassedOn) {
  GenerationRequest request = TextRequest();
  request.image = std::make_shared<const std::string>("broken");
  InspectedRequest inspected = GoodTexts();
  inspected.violations = {{"image", "is not an image file"}};
  EXPECT_THAT(FieldsOf(Plan(request, inspected).status()), ElementsAre("image"));
}

// DIFFERENCES 15: upstream does not repair a frame count, and neither is a wrong one accepted.
TEST(PlanTest, FrameCountIsNeverRepaired) {
  for (const int frames : {0, -3, 2, 3, 4, 6, 7, 8, 4094, 4097}) {
    GenerationRequest request = TextRequest();
    request.num_frames = frames;
    EXPECT_THAT(FieldsOf(Plan(request).status()), Contains("num_frames")) << frames;
  }
  for (const int frames : {1, 5, 9, 4093}) {
    GenerationRequest request = TextRequest();
    request.num_frames = frames;
    EXPECT_EQ(Plan(request)->shape.num_frames, frames);
    EXPECT_EQ(Plan(request)->latent_shape[1], (frames - 1) / 4 + 1);
  }
}

// DIFFERENCES 16: sizes are multiples of 32 and are never rounded.
TEST(PlanTest, SizeIsNeverRounded) {
  for (const int side : {0, -32, 16, 31, 33, 48, 4128}) {
    GenerationRequest request = TextRequest();
    request.width = side;
    EXPECT_THAT(FieldsOf(Plan(request).status()), Contains("width")) << side;
  }
}

// DIFFERENCES 11: with an image only the area counts; its ratio chooses the size.
TEST(PlanTest, ImageChoosesTheSizeFromTheArea) {
  GenerationRequest request = TextRequest();
  request.image = std::make_shared<const std::string>("image bytes");
  request.width = 96;
  request.height = 64;
  request.num_frames = 9;
  InspectedRequest inspected = GoodTexts();
  inspected.image = ImageSize{70, 100};
  const auto plan = Plan(request, inspected);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_TRUE(plan->image_to_video);
  EXPECT_EQ(plan->shape, (VideoShape{64, 96, 9}));
  EXPECT_EQ(plan->request.width, 64);
  EXPECT_EQ(plan->request.height, 96);
}

TEST(PlanTest, AnImageTooNarrowForTheAreaIsRefused) {
  GenerationRequest request = TextRequest();
  request.image = std::make_shared<const std::string>("image bytes");
  request.width = 64;
  request.height = 64;
  InspectedRequest inspected = GoodTexts();
  inspected.image = ImageSize{10000, 10};
  EXPECT_THAT(FieldsOf(Plan(request, inspected).status()), ElementsAre("image"));
}

// The example is an image that is accepted, and one pixel more is not.
TEST(PlanTest, AnImageThatIsTooLongIsToldHowLongItMayBe) {
  GenerationRequest request = ImageRequest();
  request.width = 1280;
  request.height = 704;
  EXPECT_THAT(
      FieldViolationsOf(Plan(request, ImageOf(2000, 20)).status()),
      ElementsAre(FieldViolation{
          "image",
          "is 2000x20; in a video with the area of 1280x704 the longer side must be at most 18.9 "
          "times the shorter, for example 378x20; with exact_size it is cut to the shape of "
          "1280x704"}));
  for (const auto& [model, longest] : {std::pair(RealModel(), 378), {RealI2v(), 375}}) {
    EXPECT_THAT(std::string(PlanOn(model, request, ImageOf(20, 2000)).status().message()),
                HasSubstr("for example 20x" + std::to_string(longest)));
    EXPECT_TRUE(PlanOn(model, request, ImageOf(20, longest)).ok());
    EXPECT_FALSE(PlanOn(model, request, ImageOf(20, longest + 1)).ok());
  }
  request.size_is_exact = true;
  EXPECT_EQ(Plan(request, ImageOf(2000, 20))->shape.width, 1280);
}

TEST(PlanTest, TheBackgroundIsWhiteUnlessTheRequestGivesOne) {
  GenerationRequest request = ImageRequest();
  EXPECT_EQ(Plan(request, ImageOf(70, 100))->request.background, (Color{255, 255, 255}));
  request.background = Color{1, 2, 3};
  EXPECT_EQ(Plan(request, ImageOf(70, 100))->request.background, (Color{1, 2, 3}));
  EXPECT_FALSE(Plan(TextRequest())->request.background.has_value());
}

TEST(PlanTest, ABackgroundNeedsAnImage) {
  GenerationRequest request = TextRequest();
  request.background = Color{1, 2, 3};
  EXPECT_THAT(FieldViolationsOf(Plan(request).status()),
              ElementsAre(FieldViolation{
                  "background",
                  "is set, but there is no image; must be left out of a text-to-video request"}));
}

TEST(PlanTest, StagesFollowTheBenchmarkInOrder) {
  GenerationRequest request = TextRequest();
  request.steps = 2;
  const auto plan = Plan(request);
  ASSERT_TRUE(plan.ok()) << plan.status();
  std::vector<std::string> names;
  for (const StagePlan& stage : plan->stages) names.push_back(NameOf(stage.stage));
  EXPECT_THAT(names,
              ElementsAre("TI2V_Preprocess", "T5_Encoding", "Step_0_Loading", "Step_0_Inference",
                          "Step_1_Loading", "Step_1_Inference", "VAE_Decoding", "Video_Encoding"));
}

// The count that the performance notes of the project use: 517 TFLOP at 27,280 tokens.
TEST(PlanTest, ForwardFlopsOfTheRealModel) {
  EXPECT_NEAR(TransformerForwardFlops(RealModel().transformer, 27280) / 1e12, 517, 5);
}

// Every stage whose time depends on its operations has them, also the autoencoder's.
TEST(PlanTest, StagesHaveTheirFlops) {
  GenerationRequest request = TextRequest();
  request.steps = 1;
  const auto plan = Plan(request);
  ASSERT_TRUE(plan.ok()) << plan.status();
  for (const StagePlan& stage : plan->stages) {
    const StageKind kind = stage.stage.kind;
    const bool computes = kind == StageKind::kT5Encoding || kind == StageKind::kStepInference ||
                          kind == StageKind::kVaeDecoding;
    EXPECT_EQ(stage.flops.value_or(0) > 0, computes) << NameOf(stage.stage);
    if (kind == StageKind::kVaeDecoding) {
      const LatentSize latents{plan->latent_shape[1], plan->latent_shape[2], plan->latent_shape[3]};
      EXPECT_EQ(*stage.flops, DecodingFlops(RealModel().vae, latents));
    }
  }
}

// TI2V-5B encodes one frame; I2V-A14B a video that is as long as the result.
TEST(PlanTest, AnImageIsEncodedAsItsModelNeedsIt) {
  for (const bool whole_video : {false, true}) {
    const PlannedModel model = whole_video ? RealI2v() : RealModel();
    const auto plan = PlanOn(model, ImageRequest(), ImageOf(1280, 720));
    ASSERT_TRUE(plan.ok()) << plan.status();
    const LatentSize encoded{whole_video ? plan->latent_shape[1] : 1, plan->latent_shape[2],
                             plan->latent_shape[3]};
    const auto stage = std::find_if(
        plan->stages.begin(), plan->stages.end(),
        [](const StagePlan& candidate) { return candidate.stage.kind == StageKind::kVaeEncoding; });
    ASSERT_NE(stage, plan->stages.end());
    EXPECT_EQ(stage->flops, EncodingFlops(model.vae, encoded));
  }
}

}  // namespace
}  // namespace wan
