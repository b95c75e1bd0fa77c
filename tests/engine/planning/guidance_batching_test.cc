// Whether a plan computes both forwards of a guided step in one batch.
#include <gtest/gtest.h>

#include <cstdint>
#include <utility>

#include "engine/planning/plan_memory.h"
#include "tests/engine/planning/plan_support.h"

namespace wan {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;

GenerationRequest SmallVideo() { return SizedRequest(512, 512, 57); }
GenerationRequest LargeVideo() { return SizedRequest(1280, 704, 121); }

// TI2V-5B on so many devices.
PlannedModel ModelWith(GuidanceBatching batching, int64_t ranks = 1) {
  PlannedModel model = Published("ti2v-5b");
  model.options.guidance_batching = batching;
  model.ranks = ranks;
  return model;
}

// Plans without a limit of memory.
GenerationPlan PlanFor(const PlannedModel& model, const GenerationRequest& request) {
  const absl::StatusOr<GenerationPlan> plan = PlanOn(model, request);
  EXPECT_TRUE(plan.ok()) << plan.status();
  return plan.value_or(GenerationPlan());
}

uint64_t StepBytes(const GenerationPlan& plan) {
  return StageOf(plan, "Step_0_Inference").activation_bytes;
}

TEST(GuidanceBatchingTest, AutoBatchesSmallVideosAndDividesEveryOneAmongAnEvenGroup) {
  const PlannedModel one = ModelWith(GuidanceBatching::kAuto);
  ASSERT_LE(PlanFor(one, SmallVideo()).tokens, kMaxTokensBatched);
  ASSERT_GT(PlanFor(one, LargeVideo()).tokens, kMaxTokensBatched);
  for (const int64_t ranks : {1, 2, 3, 4}) {
    const PlannedModel model = ModelWith(GuidanceBatching::kAuto, ranks);
    EXPECT_TRUE(PlanFor(model, SmallVideo()).batched_guidance) << ranks;
    EXPECT_EQ(PlanFor(model, LargeVideo()).batched_guidance, ranks % 2 == 0) << ranks;
  }
}

TEST(GuidanceBatchingTest, SplitNeverBatches) {
  for (const int64_t ranks : {1, 2, 3, 4}) {
    const PlannedModel model = ModelWith(GuidanceBatching::kSplit, ranks);
    for (const GenerationRequest& request : {SmallVideo(), LargeVideo()}) {
      EXPECT_FALSE(PlanFor(model, request).batched_guidance) << ranks;
    }
  }
  // One forward takes less memory than a batch of two.
  EXPECT_LT(StepBytes(PlanFor(ModelWith(GuidanceBatching::kSplit), SmallVideo())),
            StepBytes(PlanFor(ModelWith(GuidanceBatching::kAuto), SmallVideo())));
}

TEST(GuidanceBatchingTest, BatchedDoesItAtAnySize) {
  const PlannedModel model = ModelWith(GuidanceBatching::kBatched);
  EXPECT_TRUE(PlanFor(model, SmallVideo()).batched_guidance);
  const GenerationPlan large = PlanFor(model, LargeVideo());
  EXPECT_TRUE(large.batched_guidance);
  EXPECT_GT(StepBytes(large), StepBytes(PlanFor(ModelWith(GuidanceBatching::kAuto), LargeVideo())));
}

TEST(GuidanceBatchingTest, AnEarlierAttemptsChoiceComesBeforeTheSetting) {
  for (const GuidanceBatching batching :
       {GuidanceBatching::kAuto, GuidanceBatching::kBatched, GuidanceBatching::kSplit}) {
    const PlannedModel model = ModelWith(batching);
    for (GenerationRequest request : {SmallVideo(), LargeVideo()}) {
      request.batched_guidance = true;
      EXPECT_TRUE(PlanFor(model, request).batched_guidance);
      request.batched_guidance = false;
      EXPECT_FALSE(PlanFor(model, request).batched_guidance);
    }
  }
  PlannedModel unguided = FewStepT2v();
  GenerationRequest request = TextRequest();
  request.batched_guidance = true;
  EXPECT_FALSE(PlanFor(unguided, request).batched_guidance);
}

TEST(GuidanceBatchingTest, HoldsWhereMemoryIsNotPlanned) {
  PlannedModel model = RealModel();
  EXPECT_FALSE(PlanFor(model, LargeVideo()).batched_guidance);
  model.options.guidance_batching = GuidanceBatching::kBatched;
  EXPECT_TRUE(PlanFor(model, LargeVideo()).batched_guidance);
  model.options.guidance_batching = GuidanceBatching::kSplit;
  EXPECT_FALSE(PlanFor(model, SmallVideo()).batched_guidance);
}

TEST(GuidanceBatchingTest, WithoutGuidanceThereIsNothingToBatch) {
  PlannedModel model = FewStepT2v();
  model.options.guidance_batching = GuidanceBatching::kBatched;
  EXPECT_FALSE(PlanFor(model, TextRequest()).batched_guidance);
}

TEST(GuidanceBatchingTest, ABatchThatDoesNotFitIsSplitAndNoJobIsRefused) {
  for (const auto& [batching, request] : {std::pair(GuidanceBatching::kAuto, SmallVideo()),
                                          std::pair(GuidanceBatching::kBatched, SmallVideo()),
                                          std::pair(GuidanceBatching::kBatched, LargeVideo())}) {
    PlannedModel model = ModelWith(batching);
    const uint64_t batched = StepBytes(PlanFor(model, request));
    // A card that holds one forward but not two, if the weights take nearly all of it.
    model.components[0].policy = ResidencyPolicy::kCpu;
    model.components[1].policy = ResidencyPolicy::kResident;
    model.components[1].bytes = 60 * kGiB;
    model.components[2].policy = ResidencyPolicy::kCpu;
    const auto tight = PlanOn(model, request, GoodTexts(), {60 * kGiB + batched - kMiB});
    ASSERT_TRUE(tight.ok()) << tight.status();
    EXPECT_FALSE(tight->batched_guidance);
    const auto roomy = PlanOn(model, request, GoodTexts(), {60 * kGiB + batched});
    ASSERT_TRUE(roomy.ok()) << roomy.status();
    EXPECT_TRUE(roomy->batched_guidance);
  }
}

}  // namespace
}  // namespace wan
