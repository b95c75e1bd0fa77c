// Requests that take the schedule of a LoRA.
#include "engine/planning/lora_schedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "engine/api/errors.h"
#include "engine/checkpoint/checkpoint.h"
#include "engine/planning/plan.h"
#include "tests/engine/planning/plan_support.h"

namespace wan {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatEq;
using ::testing::HasSubstr;

const LoraSchedule kFourSteps = {.steps = 4, .shift = 5, .boundary_step = 2};

class LoraScheduleTest : public ::testing::Test {
 protected:
  LoraScheduleTest() {
    model_ = PlanCheckpoint(**Checkpoint::Open("synthetic:t2v-a14b"), 4, {});
    model_.components.clear();
    model_.loras = {{.name = "fast", .experts = {std::nullopt, std::nullopt}},
                    {.name = "style", .experts = {std::nullopt, std::nullopt}}};
    model_.loras[0].schedule = kFourSteps;
    request_.prompt = "A cat.";
    request_.loras = {{"fast"}};
  }

  absl::StatusOr<GenerationPlan> Plan() const {
    InspectedRequest inspected = GoodTexts();
    if (auto problem = ProblemOfLoraSchedules(model_, request_)) {
      inspected.violations.push_back(*std::move(problem));
    }
    return MakePlan(ResolveRequest(request_, model_, 7), model_, inspected, {});
  }

  std::vector<std::string> RefusedFields() const { return FieldsOf(Plan().status()); }

  static std::vector<ExpertRole> RolesOf(const GenerationPlan& plan) {
    std::vector<ExpertRole> experts;
    for (const StepPlan& step : plan.steps) experts.push_back(step.expert);
    return experts;
  }

  PlannedModel model_;
  GenerationRequest request_;
};

constexpr ExpertRole kHigh = ExpertRole::kHighNoise;
constexpr ExpertRole kLow = ExpertRole::kLowNoise;

TEST_F(LoraScheduleTest, ARequestThatLeavesStepsUnsetGetsIt) {
  const absl::StatusOr<GenerationPlan> plan = Plan();
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->request.steps, 4);
  EXPECT_EQ(plan->request.shift, 5);
  EXPECT_EQ(plan->request.solver, "euler");
  EXPECT_THAT(plan->request.guidance_scale, ElementsAre(1));
  EXPECT_EQ(plan->request.boundary_step, 2);
  EXPECT_THAT(plan->sigmas,
              ElementsAre(FloatEq(1), FloatEq(0.9375), FloatEq(0.8333333), FloatEq(0.625), 0));
  EXPECT_THAT(RolesOf(*plan), ElementsAre(kHigh, kHigh, kLow, kLow));
  EXPECT_FALSE(plan->guided);
  // The quote counts one forward for each step.
  for (const StagePlan& stage : plan->stages) {
    if (stage.stage.kind != StageKind::kStepInference) continue;
    EXPECT_EQ(stage.flops, plan->forward_flops);
  }
}

TEST_F(LoraScheduleTest, AResolvedRequestStaysAsItIs) {
  request_.steps = 4;
  const GenerationPlan plan = Plan().value();
  request_ = plan.request;
  model_.loras[0].schedule = LoraSchedule{.steps = 8, .shift = 3, .boundary_step = 1};
  const GenerationPlan again = Plan().value();
  EXPECT_EQ(again.sigmas, plan.sigmas);
  EXPECT_EQ(RolesOf(again), RolesOf(plan));
}

TEST_F(LoraScheduleTest, OtherStepsKeepSolverShiftAndTheShareOfEachExpert) {
  request_.steps = 6;
  EXPECT_THAT(RolesOf(Plan().value()), ElementsAre(kHigh, kHigh, kHigh, kLow, kLow, kLow));
  request_.steps = 8;
  const GenerationPlan plan = Plan().value();
  EXPECT_EQ(plan.request.boundary_step, 4);
  EXPECT_EQ(plan.request.shift, 5);
  EXPECT_FALSE(plan.guided);
}

TEST_F(LoraScheduleTest, WhatTheRequestSetsItselfStays) {
  request_.guidance_scale = {2};
  request_.shift = 3;
  request_.boundary_step = 1;
  const GenerationPlan plan = Plan().value();
  EXPECT_TRUE(plan.guided);
  EXPECT_EQ(plan.request.shift, 3);
  EXPECT_THAT(RolesOf(plan), ElementsAre(kHigh, kLow, kLow, kLow));
}

TEST_F(LoraScheduleTest, SigmasOfTheScheduleAreShifted) {
  model_.loras[0].schedule->sigmas = {1, 0.9, 0.5, 0.1};
  const GenerationPlan plan = Plan().value();
  EXPECT_THAT(plan.request.sigmas, ElementsAre(1, 0.9, 0.5, 0.1));
  EXPECT_THAT(plan.sigmas, ElementsAre(FloatEq(1), FloatEq(4.5F / 4.6F), FloatEq(2.5F / 3),
                                       FloatEq(0.5F / 1.4F), 0));
  request_.steps = 8;
  EXPECT_TRUE(Plan().value().request.sigmas.empty()) << "they are for four steps";
}

TEST_F(LoraScheduleTest, OtherLorasAndScalesOfZeroHaveNone) {
  request_.loras = {{"style"}};
  EXPECT_EQ(Plan().value().request.steps, model_.Defaults().steps);
  request_.loras = {{"fast", 0}};
  EXPECT_EQ(Plan().value().request.steps, model_.Defaults().steps);
  request_.loras = {{"fast", 0}, {"style"}};
  request_.loras[0].low_scale = 1;
  EXPECT_EQ(Plan().value().request.steps, 4);
}

TEST_F(LoraScheduleTest, DifferentSchedulesAreRefused) {
  request_.loras = {{"fast"}, {"style"}};
  model_.loras[1].schedule = kFourSteps;
  EXPECT_TRUE(Plan().ok()) << "they agree";
  model_.loras[1].schedule->steps = 8;
  EXPECT_THAT(RefusedFields(), ElementsAre("loras"));
  EXPECT_THAT(FieldViolationsOf(Plan().status())[0].description,
              HasSubstr("different schedules, fast, style"));
  request_.steps = 4;
  request_.shift = 5;
  request_.solver = "euler";
  request_.guidance_scale = {1};
  EXPECT_TRUE(Plan().ok());
}

TEST_F(LoraScheduleTest, TheOperatorsFastBecomesHigh) {
  model_.options.quality = Quality::kFast;
  EXPECT_EQ(Plan().value().request.quality, Quality::kHigh);
  request_.quality = Quality::kFast;
  EXPECT_THAT(RefusedFields(), ElementsAre("quality"));
}

// With one expert and the shift of the model's ratios nothing but the LoRA tells.
TEST_F(LoraScheduleTest, ALoraOfOneExpertAloneKeepsItsSteps) {
  PlannedModel one = PlanCheckpoint(**Checkpoint::Open("synthetic:ti2v-5b"), 4, {});
  one.components.clear();
  one.loras = {{.name = "fast", .experts = {std::nullopt}}};
  one.loras[0].schedule = LoraSchedule{.steps = 4};
  one.options.quality = Quality::kFast;
  model_ = one;
  EXPECT_EQ(Plan().value().request.quality, Quality::kHigh);
  request_.quality = Quality::kFast;
  EXPECT_THAT(RefusedFields(), ElementsAre("quality"));
  request_.quality = Quality::kExact;
  request_.calibrate = true;
  EXPECT_THAT(RefusedFields(), ElementsAre("calibrate"));
}

TEST_F(LoraScheduleTest, SigmasAndBoundaryOfARequestAreChecked) {
  request_.loras.clear();
  request_.sigmas = {1, 0.5};
  request_.boundary_step = 1;
  const GenerationPlan plan = Plan().value();
  EXPECT_EQ(plan.request.steps, 2);
  EXPECT_EQ(plan.request.solver, "euler");
  request_.steps = 3;
  request_.boundary_step = 4;
  request_.solver = "unipc";
  EXPECT_THAT(RefusedFields(), ElementsAre("sigmas", "solver", "boundary_step"));
  request_ = {.prompt = "A cat.", .sigmas = {0.5, 0.5}};
  EXPECT_THAT(FieldViolationsOf(Plan().status())[0].description,
              HasSubstr("has the value 0.5 at 1; must be at most 1, strictly falling"));
}

// The job would compute with the same level twice.
TEST_F(LoraScheduleTest, SigmasThatOnlyDoubleTellsApartAreRefused) {
  const auto problem = [&](const std::vector<double>& sigmas, double shift) {
    request_ = {.prompt = "A cat.", .shift = shift, .sigmas = sigmas};
    const std::vector<FieldViolation> violations = FieldViolationsOf(Plan().status());
    return violations.size() == 1 ? violations[0].field + " " + violations[0].description : "";
  };
  EXPECT_EQ(problem({1, 0.50000001, 0.5}, 1),
            "sigmas has the values 0.50000001 at 1 and 0.5 at 2, which are equal in single "
            "precision with shift 1; must differ by more");
  EXPECT_THAT(problem({1, 0.9999999, 0.5}, 100), HasSubstr("1 at 0 and 0.9999999 at 1, which"));
  EXPECT_EQ(problem({1, 1e-60}, 1),
            "sigmas has the value 1e-60 at 1, which is 0 in single precision; must be greater");
  request_ = {.prompt = "A cat.", .shift = 1, .sigmas = {1, 0.9999999, 0.5}};
  EXPECT_TRUE(Plan().ok());
  EXPECT_THAT(
      std::string(
          CheckLoraSchedule({.steps = 2, .sigmas = {0.50000001, 0.5}}, *model_.family).message()),
      HasSubstr("schedule.sigmas has the values 0.50000001 at 0 and 0.5 at 1"));
}

TEST_F(LoraScheduleTest, ScalesForAnExpertNeedTwo) {
  request_.loras[0].high_scale = 11;
  EXPECT_THAT(RefusedFields(), ElementsAre("loras[0].high_scale"));
  PlannedModel one = PlanCheckpoint(**Checkpoint::Open("synthetic:ti2v-5b"), 4, {});
  one.components.clear();
  one.loras = model_.loras;
  model_ = one;
  model_.loras[0].schedule = std::nullopt;
  request_.loras[0].high_scale = 1;
  request_.boundary_step = 1;
  EXPECT_THAT(RefusedFields(), ElementsAre("boundary_step", "loras[0].high_scale"));
}

TEST_F(LoraScheduleTest, SchedulesThatNoJobCouldHaveAreRefused) {
  const ModelFamily& two = *model_.family;
  const ModelFamily& one = FindModelFamily(FamilyId::kTi2v5b);
  EXPECT_TRUE(CheckLoraSchedule(kFourSteps, two).ok());
  EXPECT_TRUE(CheckLoraSchedule({.steps = 0}, one).ok());
  const auto says = [](const LoraSchedule& schedule, const ModelFamily& family) {
    return std::string(CheckLoraSchedule(schedule, family).message());
  };
  EXPECT_THAT(says(kFourSteps, one), HasSubstr("boundary_step is 2; must be left out"));
  EXPECT_THAT(says({.steps = 1001}, two), HasSubstr("schedule.steps is 1001"));
  EXPECT_THAT(says({.steps = 2, .sigmas = {1}}, two), HasSubstr("schedule.sigmas has 1 values"));
  EXPECT_THAT(says({.steps = 2, .shift = 0}, two), HasSubstr("schedule.shift is 0"));
  EXPECT_THAT(says({.steps = 2, .guidance_scale = {-1}}, two), HasSubstr("guidance_scale is -1"));
  EXPECT_THAT(says({.steps = 2, .boundary_step = 3}, two), HasSubstr("boundary_step is 3"));
}

}  // namespace
}  // namespace wan
