#include "server/jobs/job_sinks.h"

#include <gtest/gtest.h>

#include <vector>

namespace wan::server {
namespace {

TEST(EventSinkTest, EstimatesLearnFromTypicalStagesAlone) {
  const std::vector<StagePlan> steps = {{{StageKind::kStepInference, 0}, 100},
                                        {{StageKind::kStepInference, 1}, 1, /*is_typical=*/false},
                                        {{StageKind::kStepInference, 2}, 100}};
  TimeEstimator estimator;
  EventSink sink("m", 1, estimator, [](auto&&, auto&&) {});
  sink.SetPlan(steps);
  const auto end = [&](int step, double seconds) {
    sink.OnSpanEnd({.stage = {StageKind::kStepInference, step}, .seconds = seconds});
  };
  end(0, 10);
  end(1, 9);
  EXPECT_DOUBLE_EQ(*estimator.Seconds("m", PlannedWork(steps)), 20.1);
  end(2, 10);
  EXPECT_DOUBLE_EQ(*estimator.Seconds("m", PlannedWork(steps)), 20.1);
}

}  // namespace
}  // namespace wan::server
