#include "engine/pipeline/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace wan {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;

// TI2V-5B at its real dimensions.
PlannedModel RealModel() {
  PlannedModel model;
  model.family = FindModelFamily("ti2v-5b");
  model.transformer.dim = 3072;
  model.transformer.ffn_dim = 14336;
  model.transformer.num_heads = 24;
  model.transformer.num_layers = 30;
  model.transformer.in_channels = 48;
  model.transformer.out_channels = 48;
  model.transformer.text_len = 512;
  model.transformer.patch_size = {1, 2, 2};
  model.text_encoder.dim = 4096;
  model.text_encoder.ffn_dim = 10240;
  model.text_encoder.num_heads = 64;
  model.text_encoder.head_dim = 64;
  model.text_encoder.num_layers = 24;
  model.vae.z_dim = 48;
  model.vae.decoder_base_dim = 256;
  model.vae.patch_size = 2;
  model.vae.stride_spatial = 16;
  model.vae.stride_temporal = 4;
  return model;
}

// The A14B models at their real dimensions.
PlannedModel RealA14b(std::string_view name, double boundary) {
  PlannedModel model = RealModel();
  model.family = FindModelFamily(name);
  model.transformer.dim = 5120;
  model.transformer.ffn_dim = 13824;
  model.transformer.num_heads = 40;
  model.transformer.num_layers = 40;
  model.transformer.in_channels = name == "i2v-a14b" ? 36 : 16;
  model.transformer.out_channels = 16;
  model.vae.z_dim = 16;
  model.vae.decoder_base_dim = 96;
  model.vae.patch_size = 1;
  model.vae.stride_spatial = 8;
  model.expert_boundary = boundary;
  return model;
}

PlannedModel RealT2v() { return RealA14b("t2v-a14b", 0.875); }
PlannedModel RealI2v() { return RealA14b("i2v-a14b", 0.9); }

PlannedModel FewStepT2v() {
  PlannedModel model = RealT2v();
  model.few_step = FewStepConfig{{1000, 750, 500, 250}, 5, std::nullopt};
  return model;
}

GenerationRequest TextRequest() {
  GenerationRequest request;
  request.model = "m";
  request.prompt = "a cat";
  return request;
}

InspectedRequest GoodTexts() {
  InspectedRequest inspected;
  inspected.prompt_tokens = 4;
  inspected.negative_prompt_tokens = 139;
  return inspected;
}

absl::StatusOr<GenerationPlan> Plan(const GenerationRequest& request,
                                    const InspectedRequest& inspected = GoodTexts(),
                                    PlanLimits limits = {}) {
  return MakePlan(request, RealModel(), inspected, /*drawn_seed=*/77, limits);
}

absl::StatusOr<GenerationPlan> PlanOn(const PlannedModel& model, const GenerationRequest& request,
                                      const InspectedRequest& inspected = GoodTexts()) {
  return MakePlan(request, model, inspected, /*drawn_seed=*/77, {});
}

GenerationRequest ImageRequest() {
  GenerationRequest request = TextRequest();
  request.image = std::make_shared<const std::string>("image bytes");
  return request;
}

InspectedRequest ImageOf(int width, int height) {
  InspectedRequest inspected = GoodTexts();
  inspected.image = VideoShape{width, height, 1};
  return inspected;
}

std::vector<std::string> ExpertsOf(const GenerationPlan& plan) {
  std::vector<std::string> experts;
  for (const StepPlan& step : plan.steps) experts.push_back(step.expert);
  return experts;
}

std::vector<double> ScalesOf(const GenerationPlan& plan) {
  std::vector<double> scales;
  for (const StepPlan& step : plan.steps) scales.push_back(step.guidance_scale);
  return scales;
}

std::vector<std::string> FieldsOf(const absl::Status& status) {
  std::vector<std::string> fields;
  for (const FieldViolation& violation : FieldViolationsOf(status)) {
    fields.push_back(violation.field);
  }
  return fields;
}

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

TEST(PlanTest, EveryViolationIsNamedAtOnce) {
  GenerationRequest request = TextRequest();
  request.width = 100;
  request.height = 8192;
  request.num_frames = 6;
  request.fps = 0;
  request.steps = 1001;
  request.guidance_scale = {std::numeric_limits<double>::quiet_NaN(), 3};
  request.shift = 0;
  request.solver = "heun";
  request.preview_interval = -1;
  InspectedRequest inspected;
  inspected.prompt_tokens = 1;
  inspected.negative_prompt_tokens = 600;
  const auto plan = Plan(request, inspected);
  ASSERT_EQ(plan.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(FieldsOf(plan.status()),
              testing::UnorderedElementsAre(
                  "prompt", "negative_prompt", "width", "height", "num_frames", "fps", "steps",
                  "guidance_scale", "guidance_scale[0]", "shift", "solver", "preview_interval"));
}

TEST(PlanTest, ViolationsSayWhatWouldBeRight) {
  GenerationRequest request = TextRequest();
  request.width = 100;
  request.num_frames = 8;
  const auto violations = FieldViolationsOf(Plan(request).status());
  ASSERT_EQ(violations.size(), 2u);
  EXPECT_THAT(violations[0].description, HasSubstr("is 100; must be a multiple of 32"));
  EXPECT_THAT(violations[1].description, HasSubstr("is 8; must be 4n+1 from 1 to 4093"));
  EXPECT_THAT(violations[1].description, HasSubstr("for example 5"));
}

TEST(PlanTest, ProblemsFoundWhileReadingArePassedOn) {
  GenerationRequest request = TextRequest();
  request.image = std::make_shared<const std::string>("broken");
  InspectedRequest inspected = GoodTexts();
  inspected.violations = {{"image", "is not a PNG or JPEG file"}};
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
  inspected.image = VideoShape{70, 100, 1};
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
  inspected.image = VideoShape{10000, 10, 1};
  EXPECT_THAT(FieldsOf(Plan(request, inspected).status()), ElementsAre("image"));
}

TEST(PlanTest, WhatCannotFitIsRefusedBeforeItStarts) {
  GenerationRequest request = TextRequest();
  request.width = 4096;
  request.height = 4096;
  request.num_frames = 4093;
  PlanLimits limits;
  limits.device_memory_bytes = uint64_t{64} << 30;
  const auto refused = Plan(request, GoodTexts(), limits);
  EXPECT_THAT(FieldsOf(refused.status()), ElementsAre("num_frames"));
  request.width = 256;
  request.height = 256;
  request.num_frames = 33;
  EXPECT_TRUE(Plan(request, GoodTexts(), limits).ok());
}

TEST(PlanTest, StagesFollowTheBenchmarkInOrder) {
  GenerationRequest request = TextRequest();
  request.steps = 2;
  const auto plan = Plan(request);
  ASSERT_TRUE(plan.ok()) << plan.status();
  std::vector<std::string> names;
  for (const StagePlan& stage : plan->stages) names.push_back(stage.stage);
  EXPECT_THAT(names,
              ElementsAre("TI2V_Preprocess", "T5_Encoding", "Step_0_Loading", "Step_0_Inference",
                          "Step_1_Loading", "Step_1_Inference", "VAE_Decoding", "Video_Encoding"));
}

// The count that the performance notes of the project use: 517 TFLOP at 27,280 tokens.
TEST(PlanTest, ForwardFlopsOfTheRealModel) {
  EXPECT_NEAR(TransformerForwardFlops(RealModel().transformer, 27280) / 1e12, 517, 5);
}

TEST(PlanTest, SmallVideosAreGuidedInOneBatch) {
  GenerationRequest request = TextRequest();
  EXPECT_FALSE(Plan(request)->batched_guidance);
  request.width = 256;
  request.height = 256;
  request.num_frames = 33;
  EXPECT_TRUE(Plan(request)->batched_guidance);
}

TEST(A14bPlanTest, UnsetFieldsTakeTheModelsDefaults) {
  const auto t2v = PlanOn(RealT2v(), TextRequest());
  ASSERT_TRUE(t2v.ok()) << t2v.status();
  EXPECT_EQ(t2v->shape, (VideoShape{1280, 720, 81}));
  EXPECT_EQ(t2v->request.steps, 40);
  EXPECT_EQ(t2v->request.fps, 16);
  EXPECT_EQ(t2v->request.shift, 12.0);
  EXPECT_THAT(t2v->request.guidance_scale, ElementsAre(3.0, 4.0));
  EXPECT_EQ(*t2v->request.negative_prompt, kUpstreamNegativePrompt);
  EXPECT_THAT(t2v->latent_shape, ElementsAre(16, 21, 90, 160));
  EXPECT_EQ(t2v->tokens, 75600);
  EXPECT_TRUE(t2v->guided);
  EXPECT_FALSE(t2v->image_to_video);

  const auto i2v = PlanOn(RealI2v(), ImageRequest(), ImageOf(1280, 720));
  ASSERT_TRUE(i2v.ok()) << i2v.status();
  EXPECT_EQ(i2v->shape, (VideoShape{1280, 720, 81}));
  EXPECT_EQ(i2v->request.steps, 40);
  EXPECT_EQ(i2v->request.shift, 5.0);
  EXPECT_THAT(i2v->request.guidance_scale, ElementsAre(3.5, 3.5));
  EXPECT_EQ(i2v->stages.front().stage, "I2V_Preprocess");
  EXPECT_TRUE(i2v->image_to_video);
}

// DIFFERENCES 6: (low noise, high noise), as upstream's tuple; the run begins with high noise.
TEST(A14bPlanTest, Item6TheScaleOfLowNoiseComesFirst) {
  GenerationRequest request = TextRequest();
  request.steps = 8;
  request.shift = 5;
  request.guidance_scale = {3, 4};
  const auto plan = PlanOn(RealT2v(), request);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_THAT(ExpertsOf(*plan),
              ElementsAre("high", "high", "high", "high", "low", "low", "low", "low"));
  EXPECT_THAT(ScalesOf(*plan), ElementsAre(4, 4, 4, 4, 3, 3, 3, 3));
}

TEST(A14bPlanTest, OneScaleHoldsForBothExperts) {
  GenerationRequest request = TextRequest();
  request.steps = 8;
  request.shift = 5;
  request.guidance_scale = {6};
  EXPECT_THAT(ScalesOf(*PlanOn(RealT2v(), request)), testing::Each(6));
  request.guidance_scale = {1, 2, 3};
  EXPECT_THAT(FieldsOf(PlanOn(RealT2v(), request).status()), ElementsAre("guidance_scale"));
}

// DIFFERENCES 8: a timestep at the boundary belongs to high noise.
TEST(A14bPlanTest, Item8TheBoundaryItselfIsHighNoise) {
  GenerationRequest request = TextRequest();
  request.solver = "euler";
  request.steps = 8;
  request.shift = 1;  // timesteps 1000, 875, 750, ...
  PlannedModel model = RealT2v();
  const auto at_boundary = PlanOn(model, request);
  ASSERT_EQ(at_boundary->steps[1].timestep, 875);
  EXPECT_EQ(at_boundary->steps[1].expert, "high");
  EXPECT_EQ(at_boundary->steps[2].expert, "low");
  model.expert_boundary = 0.876;
  EXPECT_EQ(PlanOn(model, request)->steps[1].expert, "low");
}

TEST(A14bPlanTest, BoundariesOfTheTwoModelsDiffer) {
  GenerationRequest request = ImageRequest();
  request.steps = 8;
  request.shift = 5;  // 999 972 937 892 833 749 624 416
  EXPECT_THAT(ExpertsOf(*PlanOn(RealI2v(), request, ImageOf(1280, 720))),
              ElementsAre("high", "high", "high", "low", "low", "low", "low", "low"));
}

// Sizes are multiples of 16: 8 pixels a latent, 2 latents a token.
TEST(A14bPlanTest, StridesComeFromTheModel) {
  GenerationRequest request = TextRequest();
  request.width = 848;
  request.height = 480;
  EXPECT_TRUE(PlanOn(RealT2v(), request).ok());
  request.width = 840;
  const auto violations = FieldViolationsOf(PlanOn(RealT2v(), request).status());
  ASSERT_EQ(violations.size(), 1u);
  EXPECT_EQ(violations[0].field, "width");
  EXPECT_THAT(violations[0].description, HasSubstr("is 840; must be a multiple of 16"));
}

// DIFFERENCES 10: the area and the image's ratio, each side rounded down to a multiple of 16.
TEST(A14bPlanTest, Item10TheImageChoosesTheSizeByRoundingDown) {
  GenerationRequest request = ImageRequest();
  request.width = 80;
  request.height = 64;
  request.num_frames = 9;
  const auto plan = PlanOn(RealI2v(), request, ImageOf(90, 150));
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->shape, (VideoShape{48, 80, 9}));
  EXPECT_THAT(FieldsOf(PlanOn(RealI2v(), request, ImageOf(10000, 10)).status()),
              ElementsAre("image"));
}

// The rules do not give the same size twice: 48x80 has another area than what was asked for.
TEST(A14bPlanTest, APlansRequestKeepsItsSize) {
  for (const PlannedModel& model : {RealI2v(), RealModel()}) {
    SCOPED_TRACE(model.family->name);
    for (const VideoShape& area : {VideoShape{1280, 720, 1}, VideoShape{832, 480, 1}}) {
      GenerationRequest request = ImageRequest();
      request.width = area.width;
      request.height = area.height;
      for (const InspectedRequest& image : {ImageOf(1000, 700), ImageOf(90, 150)}) {
        const auto plan = PlanOn(model, request, image);
        ASSERT_TRUE(plan.ok()) << plan.status();
        const auto again = PlanOn(model, plan->request, image);
        ASSERT_TRUE(again.ok()) << again.status();
        EXPECT_EQ(again->shape, plan->shape);
      }
    }
  }
}

TEST(A14bPlanTest, AnExactSizeLiesOnTheGrid) {
  GenerationRequest request = ImageRequest();
  request.size_is_exact = true;
  request.width = 840;
  request.height = 480;
  EXPECT_THAT(FieldsOf(PlanOn(RealI2v(), request, ImageOf(90, 150)).status()),
              ElementsAre("width"));
  request.width = 832;
  EXPECT_EQ(PlanOn(RealI2v(), request, ImageOf(90, 150))->shape, (VideoShape{832, 480, 81}));
}

TEST(A14bPlanTest, AnImageIsForImageToVideoOnly) {
  const auto with = PlanOn(RealT2v(), ImageRequest(), ImageOf(64, 64));
  ASSERT_THAT(FieldsOf(with.status()), ElementsAre("image"));
  EXPECT_EQ(FieldViolationsOf(with.status())[0].description, "t2v-a14b takes no image");
  const auto without = PlanOn(RealI2v(), TextRequest());
  ASSERT_THAT(FieldsOf(without.status()), ElementsAre("image"));
  EXPECT_EQ(FieldViolationsOf(without.status())[0].description, "i2v-a14b needs an image");
}

TEST(FewStepPlanTest, TakesTimestepsAndDefaultsFromTheCheckpoint) {
  const auto plan = PlanOn(FewStepT2v(), TextRequest());
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->request.steps, 4);
  EXPECT_EQ(plan->request.solver, "euler");
  EXPECT_EQ(plan->request.shift, 5.0);
  EXPECT_THAT(plan->request.guidance_scale, ElementsAre(1.0));
  EXPECT_EQ(plan->request.negative_prompt, "");
  EXPECT_FALSE(plan->guided);
  EXPECT_FALSE(plan->batched_guidance);
  // DIFFERENCES 4: shifted and not cut.
  std::vector<double> timesteps;
  for (const StepPlan& step : plan->steps) timesteps.push_back(step.timestep);
  EXPECT_THAT(timesteps, ElementsAre(1000, 937.5, testing::DoubleNear(833.33, 0.01), 625));
  EXPECT_THAT(plan->sigmas, ElementsAre(1, 0.9375, testing::FloatNear(0.83333f, 1e-5), 0.625, 0));
  EXPECT_THAT(ExpertsOf(*plan), ElementsAre("high", "high", "low", "low"));
}

TEST(FewStepPlanTest, AResolvedRequestPlansTheSameAgain) {
  const auto plan = PlanOn(FewStepT2v(), TextRequest());
  const auto again = PlanOn(FewStepT2v(), plan->request);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->sigmas, plan->sigmas);
}

TEST(FewStepPlanTest, TheStepIndexGoesBeforeTheBoundary) {
  PlannedModel model = FewStepT2v();
  model.few_step->boundary_step_index = 3;
  EXPECT_THAT(ExpertsOf(*PlanOn(model, TextRequest())), ElementsAre("high", "high", "high", "low"));
}

TEST(FewStepPlanTest, WhatDistillationFixedCannotBeAskedOtherwise) {
  GenerationRequest request = TextRequest();
  request.steps = 8;
  request.solver = "unipc";
  request.guidance_scale = {1, 4};
  request.negative_prompt = "blurry";
  const auto violations = FieldViolationsOf(PlanOn(FewStepT2v(), request).status());
  ASSERT_EQ(violations.size(), 4u);
  EXPECT_EQ(violations[0].description, "is 8; this few-step model has 4, no more and no less");
  EXPECT_EQ(violations[1].field, "solver");
  EXPECT_EQ(violations[2].field, "guidance_scale[1]");
  EXPECT_EQ(violations[3].field, "negative_prompt");
}

TEST(FewStepPlanTest, AStepCostsOneForward) {
  GenerationRequest request = TextRequest();
  const auto guided = PlanOn(RealT2v(), request);
  const auto distilled = PlanOn(FewStepT2v(), request);
  const auto flops_of = [](const GenerationPlan& plan) {
    for (const StagePlan& stage : plan.stages) {
      if (stage.stage == "Step_0_Inference") return *stage.flops;
    }
    return 0.0;
  };
  EXPECT_GT(flops_of(*distilled), 0);
  EXPECT_EQ(flops_of(*guided), 2 * flops_of(*distilled));
}

}  // namespace
}  // namespace wan
