// Plans of the models with two experts, and of few-step checkpoints.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/planning/plan.h"
#include "tests/engine/planning/plan_support.h"

namespace wan {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

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
  EXPECT_EQ(i2v->stages.front().stage, StageKind::kI2vPreprocess);
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
  EXPECT_EQ(at_boundary->steps[1].expert, ExpertRole::kHighNoise);
  EXPECT_EQ(at_boundary->steps[2].expert, ExpertRole::kLowNoise);
  model.expert_boundary = 0.876;
  EXPECT_EQ(PlanOn(model, request)->steps[1].expert, ExpertRole::kLowNoise);
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
  EXPECT_THAT(
      violations[0].description,
      HasSubstr("is 840; must be a multiple of 16 from 16 to 4096, for example 832 or 848"));
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
    SCOPED_TRACE(NameOf(model.family->id));
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
  EXPECT_EQ(FieldViolationsOf(with.status())[0].description,
            "t2v-a14b takes no image; must be left out");
  const auto without = PlanOn(RealI2v(), TextRequest());
  ASSERT_THAT(FieldsOf(without.status()), ElementsAre("image"));
  EXPECT_EQ(FieldViolationsOf(without.status())[0].description,
            "i2v-a14b needs an image; must be a PNG, JPEG or WebP file");
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

TEST(FewStepPlanTest, TheCheckpointMayHaveAnotherSolverAndRounding) {
  PlannedModel model = RealModel();
  model.few_step = FewStepConfig{.timesteps = {1000, 280, 120},
                                 .shift = 8,
                                 .solver = "lcm",
                                 .rounding = TimestepRounding::kWhole};
  const auto plan = PlanOn(model, TextRequest());
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->request.solver, "lcm");
  std::vector<double> timesteps;
  for (const StepPlan& step : plan->steps) timesteps.push_back(step.timestep);
  EXPECT_THAT(timesteps, ElementsAre(1000, 757, 522));
  GenerationRequest euler = TextRequest();
  euler.solver = "euler";
  EXPECT_EQ(FieldViolationsOf(PlanOn(model, euler).status())[0].description,
            "is 'euler'; must be lcm for this few-step model");
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
  EXPECT_EQ(violations[0].description,
            "is 8; must be 4, the number that this few-step model was made for");
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
      if (stage.stage == Stage(StageKind::kStepInference)) return *stage.flops;
    }
    return 0.0;
  };
  EXPECT_GT(flops_of(*distilled), 0);
  EXPECT_EQ(flops_of(*guided), 2 * flops_of(*distilled));
}

}  // namespace
}  // namespace wan
