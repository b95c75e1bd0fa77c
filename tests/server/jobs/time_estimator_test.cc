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
