// Which steps of a fast job reuse the blocks' work, and what the plan says about them.
#include "engine/planning/step_reuse.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "engine/costs/wan/transformer_cost.h"
#include "tests/engine/planning/plan_support.h"

namespace wan {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

// "R" for a step that reuses, "." for one that computes.
std::string Text(const std::vector<bool>& reuses) {
  std::string text;
  for (const bool one : reuses) text += one ? 'R' : '.';
  return text;
}

std::string ReusesOf(const GenerationPlan& plan) {
  std::vector<bool> reuses;
  for (const StepPlan& step : plan.steps) reuses.push_back(step.reuses_blocks);
  return Text(reuses);
}

std::string Choose(const std::vector<std::vector<double>>& branches, int retained = 0,
                   double threshold = 0.06, int most_in_row = 2) {
  return Text(ChooseReusingSteps({branches, retained}, threshold, most_in_row));
}

std::vector<double> Equal(size_t steps, double ratio) {
  std::vector<double> ratios(steps, ratio);
  ratios.front() = 1;
  return ratios;
}

GenerationRequest FastRequest() {
  GenerationRequest request = TextRequest();
  request.quality = Quality::kFast;
  return request;
}

std::string QualityProblem(const PlannedModel& model, const GenerationRequest& request) {
  const auto violations = FieldViolationsOf(PlanOn(model, request).status());
  EXPECT_EQ(violations.size(), 1u);
  if (violations.size() != 1) return "";
  EXPECT_EQ(violations[0].field, "quality");
  return violations[0].description;
}

TEST(ChooseReusingStepsTest, ErrorsOfAProductAddUp) {
  // 1 - 0.98 = 0.02, and 1 - 0.98^2 = 0.0396 more: 0.0596 is below 0.06.
  EXPECT_EQ(Choose({Equal(7, 0.98)}), ".RR.RR.");
  // 0.021 + 0.041559 = 0.062559 is not.
  EXPECT_EQ(Choose({Equal(7, 0.979)}), ".R.R.R.");
  EXPECT_EQ(Choose({Equal(4, 1.021)}), ".R.R") << "ratios above 1 are errors as well";
  EXPECT_EQ(Choose({Equal(4, 0.94)}), "....") << "0.06 is not below 0.06";
}

TEST(ChooseReusingStepsTest, RowsAreLimited) {
  EXPECT_EQ(Choose({Equal(8, 1)}), ".RR.RR.R");
  EXPECT_EQ(Choose({Equal(8, 1)}, 0, 0.06, 3), ".RRR.RRR");
  EXPECT_EQ(Choose({Equal(5, 1)}, 0, 0.06, 1), ".R.R.");
}

TEST(ChooseReusingStepsTest, FirstStepsAreRetained) {
  EXPECT_EQ(Choose({Equal(6, 1)}, 3), "...RR.");
  EXPECT_EQ(Choose({Equal(3, 1)}, 0), ".RR") << "the first step has nothing to reuse";
  EXPECT_EQ(Choose({Equal(3, 1)}, 9), "...");
  EXPECT_EQ(Choose({Equal(3, 1)}, -2), ".RR");
}

TEST(ChooseReusingStepsTest, AllForwardsOfAStepReuseOrNone) {
  const std::vector<double> changes = {1, 1, 0.5, 1, 1, 1};
  EXPECT_EQ(Choose({Equal(6, 1)}), ".RR.RR");
  EXPECT_EQ(Choose({Equal(6, 1), changes}), ".R.RR.");
  EXPECT_EQ(Choose({changes, Equal(6, 1)}), ".R.RR.");
}

TEST(RatiosForStepsTest, EachStepTakesTheNearestMeasuredOne) {
  const std::vector<double> measured = {0.9, 0.8, 0.7, 0.6};  // of 5 steps
  EXPECT_THAT(RatiosForSteps(measured, 5), ElementsAre(1, 0.9, 0.8, 0.7, 0.6));
  EXPECT_THAT(RatiosForSteps(measured, 3), ElementsAre(1, 0.8, 0.6));
  // Positions 0, 0.5, 1, 1.5, 2, 2.5, 3, 3.5, 4; a half goes to the even number.
  EXPECT_THAT(RatiosForSteps(measured, 9), ElementsAre(1, 1, 0.9, 0.8, 0.8, 0.8, 0.7, 0.6, 0.6));
  EXPECT_THAT(RatiosForSteps(measured, 1), ElementsAre(1));
  EXPECT_THAT(RatiosForSteps({}, 2), ElementsAre(0, 0)) << "what was not measured never reuses";
}

TEST(RetainedStepsTest, CountsAStepWhoseFirstForwardIsRetained) {
  EXPECT_EQ(RetainedSteps(50, 0.2), 10);
  EXPECT_EQ(RetainedSteps(26, 0.4), 10);  // 20.8 forwards
  EXPECT_EQ(RetainedSteps(14, 0.4), 6);   // 11.2 forwards
  EXPECT_EQ(RetainedSteps(15, 1), 15);
  EXPECT_EQ(RetainedSteps(15, 0), 0);
}

// Computed by a script that follows upstream's forward by forward and knows nothing of this code:
// published ratios with a 1 before each expert's, nearest interpolation for each expert, threshold
// 0.06, at most 2 in a row, and the retained shares of MagCache's README. With 40 steps (50 for
// TI2V-5B) the forwards with the prompt are those that upstream's own loop skips.
TEST(PublishedRatiosTest, GiveTheListsOfAnIndependentScript) {
  struct Case {
    FamilyId family;
    bool image;
    int steps;
    std::string expected;
  };
  for (const Case& one : {
           Case{FamilyId::kTi2v5b, false, 50, "..........RR.RR.RR.RR.RR.RR.RR.RR.RR.R.R.R.R.R.R.R"},
           Case{FamilyId::kTi2v5b, false, 40, "........RR.RR.RR.RR.RR.RR.RR.R.R.R.R.R.R"},
           Case{FamilyId::kTi2v5b, false, 20, "....RR.RR.RR.RR.R.R."},
           Case{FamilyId::kTi2v5b, true, 50, "..........RR.RR.RR.RR.RR.RR.RR.RR.RR.R.R.R.R.R...R"},
           Case{FamilyId::kTi2v5b, true, 40, "........RR.RR.RR.RR.RR.RR.RR.R.R.R.R...R"},
           Case{FamilyId::kTi2v5b, true, 20, "....RR.RR.RR.RR.R..R"},
           Case{FamilyId::kT2vA14b, false, 50,
                ".............RR.RR.RR.RR.RR.RR.R.......R.R.R.R...."},
           Case{FamilyId::kT2vA14b, false, 40, "..........RR.RR.RR.RR.RR.R......R.R.R..."},
           Case{FamilyId::kT2vA14b, false, 20, ".....RR.RR.RR...R..."},
           Case{FamilyId::kWan21T2v1b, false, 50,
                "..........RR.RR.RR.RR.RR.RR.RR.RR.RR.RR.R.R.R....."},
           Case{FamilyId::kWan21T2v14b, false, 50,
                "..........RR.RR.RR.RR.RR.RR.RR.RR.RR.R.R.R.R......"},
           Case{FamilyId::kI2vA14b, true, 50, ".....................RR.RR.RR.RR.R.R.R.R.R.R......"},
           Case{FamilyId::kI2vA14b, true, 40, "..................RR.RR.RR.R.R.R.R......"},
           Case{FamilyId::kI2vA14b, true, 20, ".........RR.RR.R...."},
       }) {
    SCOPED_TRACE(testing::Message()
                 << NameOf(one.family) << (one.image ? " image " : " text ") << one.steps);
    GenerationRequest request = one.image ? ImageRequest() : TextRequest();
    request.quality = Quality::kFast;
    request.steps = one.steps;
    const auto plan =
        PlanOn(RealModel(one.family), request, one.image ? ImageOf(1280, 720) : GoodTexts());
    ASSERT_TRUE(plan.ok()) << plan.status();
    EXPECT_EQ(ReusesOf(*plan), one.expected);
    EXPECT_TRUE(plan->eight_bits);
    for (size_t i = 1; i < plan->steps.size(); ++i) {
      if (plan->steps[i].expert == plan->steps[i - 1].expert) continue;
      EXPECT_FALSE(plan->steps[i].reuses_blocks) << "an expert begins by computing";
    }
  }
}

TEST(FastPlanTest, OtherQualitiesComputeEveryStep) {
  for (const Quality quality : {Quality::kExact, Quality::kHigh}) {
    GenerationRequest request = TextRequest();
    request.quality = quality;
    const auto plan = Plan(request);
    ASSERT_TRUE(plan.ok()) << plan.status();
    EXPECT_EQ(ReusesOf(*plan), std::string(50, '.'));
    EXPECT_FALSE(plan->keeps_blocks());
  }
}

TEST(FastPlanTest, AReusingStepHasTheWorkThatIsLeft) {
  const PlannedModel model = RealModel();
  const auto plan = PlanOn(model, FastRequest());
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_TRUE(plan->keeps_blocks());
  const StagePlan& computes = StageOf(*plan, "Step_9_Inference");
  const StagePlan& reuses = StageOf(*plan, "Step_10_Inference");
  EXPECT_EQ(*computes.flops, 2 * TransformerForwardFlops(model.transformer, plan->tokens));
  EXPECT_EQ(*reuses.flops, 2 * TransformerEndsFlops(model.transformer, plan->tokens));
  EXPECT_LT(*reuses.flops, *computes.flops / 1000);
}

TEST(FastPlanTest, PlansAgainAsItDidBefore) {
  const auto plan = PlanOn(RealT2v(), FastRequest());
  ASSERT_TRUE(plan.ok()) << plan.status();
  const auto again = PlanOn(RealT2v(), plan->request);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(ReusesOf(*again), ReusesOf(*plan));
}

TEST(FastPlanTest, GuidanceEndsAfterItsShareOfSteps) {
  PlannedModel model = RealModel();
  model.options.guidance_until = 0.5;
  GenerationRequest request = FastRequest();
  request.steps = 20;
  const auto plan = PlanOn(model, request);
  ASSERT_TRUE(plan.ok()) << plan.status();
  std::vector<double> scales(20, 5);
  std::fill(scales.begin() + 10, scales.end(), 1);
  EXPECT_THAT(ScalesOf(*plan), testing::ElementsAreArray(scales));
  EXPECT_THAT(plan->request.guidance_scale, ElementsAre(5)) << "the request stays as it is";
  EXPECT_TRUE(plan->guided);
  EXPECT_EQ(plan->unguided_from, 10);
  // Where guidance ends, the texts are prepared anew, so that step computes and begins a row.
  EXPECT_EQ(ReusesOf(*plan), "....RR.RR..RR.R.R.R.");
  EXPECT_EQ(*StageOf(*plan, "Step_10_Inference").flops, plan->forward_flops);

  request.quality = Quality::kHigh;
  EXPECT_THAT(ScalesOf(*PlanOn(model, request)), testing::Each(5)) << "only fast jobs do it";
  EXPECT_EQ(PlanOn(model, request)->unguided_from, std::nullopt);
  request.quality = Quality::kFast;
  model.options.guidance_until = 0;
  EXPECT_FALSE(PlanOn(model, request)->guided);
}

// The steps that the latents replace kept nothing, so the first computed one computes its blocks,
// and so do as many after it as in a whole job.
TEST(FastPlanTest, ReusingCountsFromTheFirstStepThatIsComputed) {
  GenerationRequest request = FastRequest();
  request.width = 1280;
  request.height = 704;
  request.num_frames = 121;
  request.steps = 20;
  request.latents = std::make_shared<const std::string>("the file");
  InspectedRequest inspected = GoodTexts();
  inspected.latents = {48, 31, 44, 80};
  request.strength = 1;
  const auto whole = Plan(request, inspected);
  ASSERT_TRUE(whole.ok()) << whole.status();
  for (const double strength : {0.95, 0.9, 0.8, 0.6, 0.3}) {
    request.strength = strength;
    const auto plan = Plan(request, inspected);
    ASSERT_TRUE(plan.ok()) << plan.status();
    const std::string reuses = ReusesOf(*plan);
    EXPECT_EQ(reuses.size() + static_cast<size_t>(plan->first_step), 20U);
    EXPECT_EQ(reuses.substr(0, 4), std::string("....").substr(0, reuses.size())) << strength;
  }
  // Steps are guided until the same noise level as in a whole job.
  PlannedModel model = RealModel();
  model.options.guidance_until = 0.5;
  request.strength = 0.9;
  const auto plan = PlanOn(model, request, inspected);
  EXPECT_EQ(*plan->unguided_from + plan->first_step, 10);
  request.strength = 0.3;
  EXPECT_EQ(PlanOn(model, request, inspected)->unguided_from, 0);
  EXPECT_FALSE(PlanOn(model, request, inspected)->guided);
}

TEST(FastPlanTest, WithoutGuidanceOneForwardDecides) {
  GenerationRequest request = FastRequest();
  request.guidance_scale = {1};
  request.steps = 20;
  const auto plan = Plan(request);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(ReusesOf(*plan), "....RR.RR.RR.RR.R.R.");
}

StepRatios OwnRatios(bool guided = true) {
  StepRatios ratios;
  ratios.solver = "unipc";
  ratios.steps = 6;
  ratios.shift = 5;
  ratios.guidance_scale = {5};
  PhaseRatios& phase = ratios.experts.emplace_back();
  phase.conditional = std::vector<double>(5, 1);
  if (guided) phase.unconditional = phase.conditional;
  return ratios;
}

TEST(FastPlanTest, TheCheckpointsOwnRatiosComeFirst) {
  PlannedModel model = RealModel();
  model.step_ratios = OwnRatios();
  GenerationRequest request = FastRequest();
  request.steps = 10;
  EXPECT_EQ(ReusesOf(*PlanOn(model, request)), "..RR.RR.RR");
  model.step_ratios->experts[0].retained_share = 0.5;
  EXPECT_EQ(ReusesOf(*PlanOn(model, request)), ".....RR.RR");
  model.step_ratios->most_in_row = 4;
  EXPECT_EQ(ReusesOf(*PlanOn(model, request)), ".....RRRR.");
  model.step_ratios->experts[0].conditional = std::vector<double>(5, 0.9);
  EXPECT_EQ(ReusesOf(*PlanOn(model, request)), "..........");
  model.step_ratios->threshold = 0.15;
  EXPECT_EQ(ReusesOf(*PlanOn(model, request)), ".....R.R.R");
}

TEST(FastPlanTest, AModelWithoutRatiosRefuses) {
  PlannedModel model = RealModel();
  model.transformer.num_layers = 4;
  EXPECT_EQ(QualityProblem(model, FastRequest()),
            "is fast; must be exact or high for this model until its ratios are measured: wanctl "
            "calibrate m");
  model.step_ratios = OwnRatios();
  EXPECT_TRUE(PlanOn(model, FastRequest()).ok());
}

TEST(FastPlanTest, RatiosOfAnotherScheduleRefuse) {
  GenerationRequest request = FastRequest();
  request.shift = 3;
  EXPECT_EQ(
      QualityProblem(RealModel(), request),
      "is fast; must be exact or high with shift 3, because this model's ratios were measured "
      "with shift 5");
  PlannedModel model = RealModel();
  model.step_ratios = OwnRatios(/*guided=*/false);
  EXPECT_EQ(QualityProblem(model, FastRequest()),
            "is fast; must be exact or high with guidance, because this model's ratios were "
            "measured without it");
  request = FastRequest();
  request.guidance_scale = {1};
  EXPECT_TRUE(PlanOn(model, request).ok());
}

TEST(FastPlanTest, WhereTheOperatorChoseFastAModelThatCannotBeIsHigh) {
  PlannedModel model = RealModel();
  model.options.quality = Quality::kFast;
  EXPECT_EQ(PlanOn(model, TextRequest())->request.quality, Quality::kFast);
  model.transformer.num_layers = 4;
  EXPECT_EQ(PlanOn(model, TextRequest())->request.quality, Quality::kHigh);
  PlannedModel few_step = FewStepT2v();
  few_step.options.quality = Quality::kFast;
  EXPECT_EQ(PlanOn(few_step, TextRequest())->request.quality, Quality::kHigh);
}

TEST(FastPlanTest, AFewStepModelHasNothingToSkip) {
  EXPECT_THAT(QualityProblem(FewStepT2v(), FastRequest()),
              HasSubstr("must be exact or high for this few-step model"));
}

TEST(CalibrationPlanTest, ComputesAndKeepsEveryStepOneForwardAtATime) {
  PlannedModel model = Published("ti2v-5b");
  GenerationRequest request = SizedRequest(256, 256, 33);
  request.calibrate = true;
  const auto plan = PlanOn(model, request);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(ReusesOf(*plan), std::string(50, '.'));
  EXPECT_TRUE(plan->keeps_blocks());
  EXPECT_FALSE(plan->batched_guidance);
  request.calibrate = false;
  EXPECT_TRUE(PlanOn(model, request)->batched_guidance);
}

TEST(CalibrationPlanTest, SaysWhatItNeeds) {
  GenerationRequest request = FastRequest();
  request.calibrate = true;
  EXPECT_EQ(QualityProblem(RealModel(), request),
            "is fast; must be exact in a job that calibrates");
  request.quality = Quality::kExact;
  EXPECT_THAT(FieldsOf(PlanOn(FewStepT2v(), request).status()), ElementsAre("calibrate"));
  PlannedModel group = RealModel();
  group.ranks = 2;
  EXPECT_THAT(std::string(PlanOn(group, request).status().message()),
              AllOf(HasSubstr("calibrate"), HasSubstr("on a group of 2 devices")));
}

TEST(FastPlanTest, KeptBlocksAreMemoryOfTheSteps) {
  const PlannedModel model = Published("ti2v-5b");
  GenerationRequest request = SizedRequest(1280, 704, 121);
  const auto step_bytes = [&](Quality quality, int64_t ranks, double guidance) {
    PlannedModel group = model;
    group.ranks = ranks;
    group.options.guidance_batching = GuidanceBatching::kSplit;
    request.quality = quality;
    request.guidance_scale = {guidance};
    const auto plan = PlanOn(group, request);
    EXPECT_TRUE(plan.ok()) << plan.status();
    const StagePlan& step = StageOf(*plan, "Step_0_Inference");
    return static_cast<double>(step.activation_bytes);
  };
  const auto kept = [&](int64_t ranks, double guidance) {
    return step_bytes(Quality::kFast, ranks, guidance) -
           step_bytes(Quality::kHigh, ranks, guidance);
  };
  // 27,280 tokens of 3,072 values in fp32 for each text.
  const double text = 27280.0 * 3072 * 4;
  EXPECT_GE(kept(1, 5), 2 * text);
  EXPECT_LE(kept(1, 5), 1.1 * 2 * text);
  EXPECT_NEAR(kept(1, 1), kept(1, 5) / 2, 1 << 20) << "without guidance one text";
  EXPECT_NEAR(kept(3, 5), kept(1, 5) / 3, 1 << 20) << "ranks divide the tokens";
}

}  // namespace
}  // namespace wan
