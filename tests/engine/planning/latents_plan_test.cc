// Plans of jobs that begin with the request's latents, or only decode them.
#include "engine/planning/latents_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "tests/engine/planning/plan_support.h"

namespace wan {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::IsEmpty;

std::shared_ptr<const std::string> SomeFile() {
  return std::make_shared<const std::string>("the file");
}

// For latents of a 1280x704 video with 121 frames of TI2V-5B.
const std::vector<int64_t> kShape = {48, 31, 44, 80};

InspectedRequest WithLatents(const std::vector<int64_t>& shape = kShape) {
  InspectedRequest inspected = GoodTexts();
  inspected.latents = shape;
  return inspected;
}

GenerationRequest Varied(double strength) {
  GenerationRequest request = SizedRequest(1280, 704, 121);
  request.latents = SomeFile();
  request.strength = strength;
  return request;
}

GenerationRequest Decoded() {
  GenerationRequest request = SizedRequest(1280, 704, 121);
  request.prompt.clear();
  request.latents = SomeFile();
  request.steps = 0;
  return request;
}

std::vector<std::string> StagesOf(const GenerationPlan& plan) {
  std::vector<std::string> names;
  for (const StagePlan& stage : plan.stages) names.push_back(NameOf(stage.stage));
  return names;
}

// The description of the only violation, which must be that of `field`.
std::string Problem(const absl::StatusOr<GenerationPlan>& plan, const std::string& field) {
  const auto violations = FieldViolationsOf(plan.status());
  EXPECT_THAT(FieldsOf(plan.status()), ElementsAre(field)) << plan.status();
  return violations.empty() ? "" : violations[0].description;
}

TEST(LatentsPlanTest, BeginsAtTheFirstStepWithAtMostTheStrengthsNoise) {
  GenerationRequest request = SizedRequest(1280, 704, 121);
  request.steps = 20;
  const auto whole = Plan(request);
  ASSERT_TRUE(whole.ok()) << whole.status();
  for (const double strength : {1.0, 0.9, 0.6, 0.3}) {
    request = Varied(strength);
    request.steps = 20;
    const auto plan = Plan(request, WithLatents());
    ASSERT_TRUE(plan.ok()) << plan.status();
    const auto first = static_cast<size_t>(plan->first_step);
    ASSERT_EQ(plan->steps.size() + first, 20U);
    EXPECT_LE(plan->sigmas.front(), static_cast<float>(strength));
    if (first > 0) {
      EXPECT_GT(whole->sigmas[first - 1], static_cast<float>(strength));
    }
    EXPECT_TRUE(std::equal(plan->sigmas.begin(), plan->sigmas.end(),
                           whole->sigmas.begin() + plan->first_step, whole->sigmas.end()));
    EXPECT_EQ(plan->steps.front().timestep, whole->steps[first].timestep);
    EXPECT_EQ(plan->request.steps, 20) << "the schedule's";
    EXPECT_EQ(NameOf(plan->stages[3].stage), "Step_0_Inference");
  }
  EXPECT_EQ(Plan(Varied(1), WithLatents())->first_step, 0);
}

// A level is fp32, and so is the strength that is compared with it.
TEST(LatentsPlanTest, AStrengthThatIsALevelBeginsThere) {
  GenerationRequest request = Varied(0.6);
  request.solver = "euler";
  request.shift = 1;
  request.steps = 10;
  EXPECT_EQ(Plan(request, WithLatents())->first_step, 4);
}

TEST(LatentsPlanTest, PlansAgainAsItDidBefore) {
  const auto plan = Plan(Varied(0.5), WithLatents());
  ASSERT_TRUE(plan.ok()) << plan.status();
  const auto again = Plan(plan->request, WithLatents());
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->first_step, plan->first_step);
  EXPECT_EQ(again->sigmas, plan->sigmas);
}

TEST(LatentsPlanTest, AStrengthBelowEveryLevelIsRefusedAndTheMessagesIsAccepted) {
  GenerationRequest request = Varied(0.01);
  request.solver = "euler";
  request.steps = 4;  // with shift 5: 1, 0.9375, 0.8333, 0.625
  EXPECT_EQ(
      Problem(Plan(request, WithLatents()), "strength"),
      "is 0.01; must be at least 0.625, the noise level of the last of 4 steps; or steps must "
      "be 0, which only decodes the latents");
  request.strength = 0.625;
  EXPECT_EQ(Plan(request, WithLatents())->steps.size(), 1U);
}

TEST(LatentsPlanTest, StrengthGoesWithLatentsAndSteps) {
  for (const double strength : {0.0, -0.5, 1.5, std::nan("")}) {
    EXPECT_EQ(FieldsOf(Plan(Varied(strength), WithLatents()).status()),
              std::vector<std::string>{"strength"});
  }
  GenerationRequest request = Varied(0.5);
  request.strength.reset();
  EXPECT_EQ(
      Problem(Plan(request, WithLatents()), "strength"),
      "is unset; must be above 0 and at most 1 beside latents, for example 0.6; or steps must "
      "be 0, which only decodes them");
  request = TextRequest();
  request.strength = 0.5;
  EXPECT_EQ(Problem(Plan(request), "strength"),
            "is 0.5; must be left out without latents to begin with");
  request = Decoded();
  request.strength = 0.5;
  EXPECT_EQ(Problem(Plan(request, WithLatents()), "strength"),
            "is 0.5; must be left out with steps 0");
}

TEST(LatentsPlanTest, LatentsMustHaveTheVideosShape) {
  GenerationRequest request = SizedRequest(1280, 720, 81);
  request.initial_latents = SomeFile();
  InspectedRequest inspected = GoodTexts();
  const auto problem = [&](const std::vector<int64_t>& shape) {
    inspected.initial_latents = shape;
    return Problem(PlanOn(RealT2v(), request, inspected), "initial_latents");
  };
  EXPECT_EQ(problem({16, 21, 60, 104}),
            "is [16, 21, 60, 104], which is 832x480x81; must be [16, 21, 90, 160] for 1280x720x81");
  EXPECT_EQ(problem({48, 21, 45, 80}),
            "is [48, 21, 45, 80], latents of ti2v-5b; must be [16, 21, 90, 160] for 1280x720x81 of "
            "t2v-a14b");
  EXPECT_EQ(problem({4, 90, 160}), "is [4, 90, 160]; must be [16, 21, 90, 160] for 1280x720x81");
  EXPECT_EQ(problem({16, 21, 0, 160}),
            "is [16, 21, 0, 160]; must be [16, 21, 90, 160] for 1280x720x81");
  inspected.initial_latents = {16, 21, 90, 160};
  EXPECT_TRUE(PlanOn(RealT2v(), request, inspected).ok());
  EXPECT_EQ(Problem(Plan(Varied(0.5), WithLatents({48, 31, 44, 44})), "latents"),
            "is [48, 31, 44, 44], which is 704x704x121; must be [48, 31, 44, 80] for 1280x704x121");
}

TEST(LatentsPlanTest, ZeroStepsDecodeAndDoNothingElse) {
  const auto plan = Plan(Decoded(), WithLatents());
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_THAT(StagesOf(*plan), ElementsAre("TI2V_Preprocess", "VAE_Decoding", "Video_Encoding"));
  EXPECT_FALSE(plan->denoises());
  EXPECT_FALSE(plan->guided);
  EXPECT_THAT(plan->steps, IsEmpty());
  EXPECT_TRUE(Plan(plan->request, WithLatents()).ok());
  // A few-step model and one that needs an image decode as well.
  InspectedRequest inspected = WithLatents({16, 31, 88, 160});
  EXPECT_TRUE(PlanOn(FewStepT2v(), Decoded(), inspected).ok());
  EXPECT_TRUE(PlanOn(RealI2v(), Decoded(), inspected).ok());
}

TEST(LatentsPlanTest, ZeroStepsNeedLatents) {
  GenerationRequest request = TextRequest();
  request.steps = 0;
  EXPECT_EQ(Problem(Plan(request), "steps"),
            "is 0; must be from 1 to 1000, or latents must be given, which 0 steps only decode");
  request.steps = -1;
  EXPECT_EQ(Problem(Plan(request), "steps"), "is -1; must be from 1 to 1000");
}

TEST(LatentsPlanTest, WhatZeroStepsCannotUseIsRefused) {
  GenerationRequest request = Decoded();
  request.image = SomeFile();
  request.initial_latents = SomeFile();
  request.loras = {{"style", 1}};
  request.outputs = {OutputKind::kLatents};
  InspectedRequest inspected = WithLatents();
  inspected.image = ImageSize{1280, 704};
  PlannedModel model = RealModel();
  model.loras.push_back({.name = "style", .experts = {std::nullopt}});
  EXPECT_THAT(FieldsOf(PlanOn(model, request, inspected).status()),
              ElementsAre("initial_latents", "image", "loras", "outputs"));
}

TEST(LatentsPlanTest, RatiosAreMeasuredFromNoiseOn) {
  GenerationRequest request = Varied(1);
  request.calibrate = true;
  EXPECT_EQ(
      Problem(Plan(request, WithLatents()), "calibrate"),
      "is true; must be false beside latents, because the ratios are those of all steps, from "
      "noise on");
}

// The last expert's steps have no guidance here, so nothing needs the negative prompt.
TEST(LatentsPlanTest, StepsThatAreNotComputedNeedNoGuidance) {
  GenerationRequest request = Varied(0.5);
  request.guidance_scale = {1, 4};
  const InspectedRequest inspected = WithLatents({16, 31, 88, 160});
  const auto plan = PlanOn(RealT2v(), request, inspected);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_THAT(ExpertsOf(*plan), Each("low"));
  EXPECT_FALSE(plan->guided);
  request.strength = 1;
  EXPECT_TRUE(PlanOn(RealT2v(), request, inspected)->guided);
}

}  // namespace
}  // namespace wan
