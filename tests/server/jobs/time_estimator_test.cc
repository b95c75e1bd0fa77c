#include "server/jobs/time_estimator.h"

#include <random>
#include <vector>

#include "gtest/gtest.h"

namespace wan::server {
namespace {

const std::vector<StagePlan> kStages = {{StageKind::kT5Encoding, std::nullopt},
                                        {{StageKind::kStepInference, 0}, 100},
                                        {{StageKind::kStepInference, 1}, 100},
                                        {StageKind::kVaeDecoding, 50}};

TEST(TimeEstimatorTest, UnknownUntilAStepWasSeen) {
  TimeEstimator estimator;
  EXPECT_EQ(estimator.Seconds("m", PlannedWork(kStages)), std::nullopt);
  estimator.Observe("m", {StageKind::kVaeDecoding, 50}, 1);
  EXPECT_EQ(estimator.Seconds("m", PlannedWork(kStages)), std::nullopt);
  estimator.Observe("m", {{StageKind::kStepInference, 7}, 100}, 2);
  EXPECT_TRUE(estimator.Seconds("m", PlannedWork(kStages)).has_value());
  EXPECT_EQ(estimator.Seconds("other", PlannedWork(kStages)), std::nullopt);
  EXPECT_EQ(estimator.Seconds("m", PlannedWork({})), std::nullopt);
}

TEST(TimeEstimatorTest, ExpectsTheAssumedRateUntilAStepWasSeen) {
  TimeEstimator estimator;
  const PlannedWork work(kStages);
  EXPECT_EQ(estimator.Expected("m", work), std::nullopt) << "nothing is assumed";
  estimator.Assume(10);
  EXPECT_DOUBLE_EQ(*estimator.Expected("m", work), (100 + 100 + 50) / 10.0);
  EXPECT_DOUBLE_EQ(estimator.ExpectedSpread("m").p90, 3);
  EXPECT_EQ(estimator.Seconds("m", work), std::nullopt) << "nothing was learned by that";
  EXPECT_EQ(estimator.Learned(), "");
  EXPECT_EQ(estimator.Expected("m", PlannedWork({})), std::nullopt);
  estimator.Observe("m", {StageKind::kVaeDecoding, 50}, 1);
  EXPECT_DOUBLE_EQ(*estimator.Expected("m", work), 25) << "no step was among it";
  estimator.Observe("m", {{StageKind::kStepInference, 7}, 100}, 2);
  EXPECT_DOUBLE_EQ(*estimator.Expected("m", work), 2 + 2 + 1);
  EXPECT_DOUBLE_EQ(estimator.ExpectedSpread("m").p90, estimator.JobSpread().p90);
  EXPECT_DOUBLE_EQ(*estimator.Expected("another", work), 25);
}

TEST(TimeEstimatorTest, ScalesWithTheWork) {
  TimeEstimator estimator;
  estimator.Observe("m", {{StageKind::kStepInference, 0}, 100}, 2);
  estimator.Observe("m", {StageKind::kVaeDecoding, 50}, 5);
  estimator.Observe("m", {StageKind::kT5Encoding, std::nullopt}, 0.5);
  EXPECT_DOUBLE_EQ(*estimator.Seconds("m", PlannedWork(kStages)), 0.5 + 2 + 2 + 5);
  const std::vector<StagePlan> larger = {{{StageKind::kStepInference, 0}, 300},
                                         {StageKind::kVaeDecoding, 100}};
  EXPECT_DOUBLE_EQ(*estimator.Seconds("m", PlannedWork(larger)), 6 + 10);
}

TEST(TimeEstimatorTest, AStageNeverSeenRunsAsFastAsAStep) {
  TimeEstimator estimator;
  estimator.Observe("m", {{StageKind::kStepInference, 0}, 100}, 2);
  EXPECT_DOUBLE_EQ(*estimator.Seconds("m", PlannedWork(kStages)), 0 + 2 + 2 + 1);
}

StagePlan Step(StageMethod method, double flops = 100) {
  StagePlan step{{StageKind::kStepInference, 0}, flops};
  step.method = method;
  return step;
}

double SecondsOf(const TimeEstimator& estimator, const StagePlan& stage) {
  return estimator.Seconds("m", PlannedWork({&stage, 1})).value_or(-1);
}

TEST(TimeEstimatorTest, EachMethodOfAStepHasItsRate) {
  TimeEstimator estimator;
  estimator.Observe("m", Step(StageMethod::kExact), 10);
  // Until steps of 8 bits were seen, they are as fast as exact ones, and steps that reuse blocks
  // take what their few operations take.
  EXPECT_DOUBLE_EQ(SecondsOf(estimator, Step(StageMethod::kEightBits)), 10);
  EXPECT_DOUBLE_EQ(SecondsOf(estimator, Step(StageMethod::kReuse, 1)), 0.1);

  estimator.Observe("m", Step(StageMethod::kEightBits), 6);
  estimator.Observe("m", Step(StageMethod::kReuse, 1), 0.5);
  EXPECT_DOUBLE_EQ(SecondsOf(estimator, Step(StageMethod::kExact)), 10);
  EXPECT_DOUBLE_EQ(SecondsOf(estimator, Step(StageMethod::kEightBits)), 6);
  const std::vector<StagePlan> fast = {Step(StageMethod::kEightBits),
                                       Step(StageMethod::kReuse, 1),
                                       Step(StageMethod::kEightBits),
                                       Step(StageMethod::kReuse, 1),
                                       {StageKind::kVaeDecoding, 50}};
  EXPECT_DOUBLE_EQ(*estimator.Seconds("m", PlannedWork(fast)), 6 + 0.5 + 6 + 0.5 + 5);
}

TEST(TimeEstimatorTest, TheRatesOfMethodsOutliveTheProcess) {
  TimeEstimator before;
  before.Observe("m", Step(StageMethod::kExact), 10);
  before.Observe("m", Step(StageMethod::kEightBits), 6);
  before.Observe("m", Step(StageMethod::kReuse, 1), 0.5);
  EXPECT_EQ(before.Learned(),
            "Step_Inference 0.1 10 m\nStep_Inference/eight_bits 0.06 6 m\n"
            "Step_Inference/reuse 0.5 0.5 m\n");
  TimeEstimator after;
  after.TakeOver(before.Learned() + "Step_Inference/better 1 1 m\nStep_Inference/ 1 1 n\n");
  EXPECT_EQ(after.Learned(), before.Learned());
}

StagePlan StepWithExactBlocks(int blocks) {
  StagePlan step = Step(StageMethod::kEightBits);
  step.exact_blocks = blocks;
  return step;
}

// Another value of quality_exact_blocks is another rate, also for the rates of an earlier process.
TEST(TimeEstimatorTest, BlocksThatStayExactHaveRatesOfTheirOwn) {
  TimeEstimator before;
  before.Observe("m", StepWithExactBlocks(0), 6);
  before.Observe("m", StepWithExactBlocks(2), 8);
  EXPECT_DOUBLE_EQ(SecondsOf(before, StepWithExactBlocks(0)), 6);
  EXPECT_DOUBLE_EQ(SecondsOf(before, StepWithExactBlocks(2)), 8);
  EXPECT_DOUBLE_EQ(SecondsOf(before, StepWithExactBlocks(12)), 8) << "the most exact of both";
  EXPECT_EQ(before.Learned(),
            "Step_Inference/eight_bits 0.06 6 m\nStep_Inference/eight_bits/2 0.08 8 m\n");
  TimeEstimator after;
  after.TakeOver(before.Learned() +
                 "Step_Inference/eight_bits/x 1 1 m\nStep_Inference/eight_bits/02 1 1 m\n"
                 "Step_Inference/eight_bits/-1 1 1 m\nStep_Inference/eight_bits/2/3 1 1 m\n");
  EXPECT_EQ(after.Learned(), before.Learned());
  const std::vector<StagePlan> both = {StepWithExactBlocks(0), StepWithExactBlocks(2)};
  EXPECT_DOUBLE_EQ(*after.Seconds("m", PlannedWork(both)), 14);
}

TEST(TimeEstimatorTest, StepsThatReuseBlocksAreNoRateOfTheModel) {
  TimeEstimator estimator;
  estimator.Observe("m", Step(StageMethod::kReuse, 1), 0.5);
  EXPECT_EQ(SecondsOf(estimator, Step(StageMethod::kExact)), -1);
  estimator.Observe("m", Step(StageMethod::kEightBits), 6);
  EXPECT_DOUBLE_EQ(SecondsOf(estimator, Step(StageMethod::kExact)), 6);
}

TEST(TimeEstimatorTest, TheLatestCountsMost) {
  TimeEstimator estimator;
  const std::vector<StagePlan> step = {{{StageKind::kStepInference, 0}, 100}};
  estimator.Observe("m", step[0], 10);  // cold
  for (int i = 0; i < 20; ++i) estimator.Observe("m", step[0], 2);
  EXPECT_NEAR(*estimator.Seconds("m", PlannedWork(step)), 2, 1e-4);
}

TEST(JobSpreadTest, WithFewJobsItIsCautious) {
  TimeEstimator estimator;
  for (int i = 0; i < 8; ++i) estimator.ObserveJob(10, 10);
  EXPECT_EQ(estimator.JobSpread().p50, 1);
  EXPECT_EQ(estimator.JobSpread().p90, 1.5);
  estimator.ObserveJob(10, 10);
  EXPECT_EQ(estimator.JobSpread().p90, 1);
}

// Of jobs that take longer or shorter than estimated at random, nine of ten end within p90, and
// half within p50.
TEST(JobSpreadTest, NineOfTenJobsEndWithinIt) {
  TimeEstimator estimator;
  std::mt19937 random(3);
  std::lognormal_distribution<double> ratio(0.1, 0.4);
  int within_p90 = 0;
  int within_p50 = 0;
  constexpr int kJobs = 2000;
  for (int job = 0; job < kJobs; ++job) {
    const double actual = 30 * ratio(random);
    within_p90 += actual <= 30 * estimator.JobSpread().p90 ? 1 : 0;
    within_p50 += actual <= 30 * estimator.JobSpread().p50 ? 1 : 0;
    estimator.ObserveJob(30, actual);
  }
  EXPECT_NEAR(within_p90, 0.9 * kJobs, 0.03 * kJobs);
  EXPECT_NEAR(within_p50, 0.5 * kJobs, 0.05 * kJobs);
}

}  // namespace
}  // namespace wan::server
