#include "server/jobs/time_estimator.h"

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

}  // namespace
}  // namespace wan::server
