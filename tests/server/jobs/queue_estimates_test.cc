#include "server/jobs/queue_estimates.h"

#include <fstream>

#include "gmock/gmock.h"
#include "tests/server/jobs/test_support.h"

namespace wan::server {
namespace {

using wan::v1::JOB_STATE_COMPLETED;

class QueueEstimatesTest : public ServiceTest {
 protected:
  // What the queue of "m" is estimated to take; nothing while none of it can be estimated.
  std::optional<double> QueuedSeconds() {
    const JobStats stats = service_->Stats();
    const auto found = stats.queued_seconds.find("m");
    return found == stats.queued_seconds.end() ? std::nullopt : std::optional(found->second);
  }
  int Unestimated() {
    const JobStats stats = service_->Stats();
    const auto found = stats.unestimated.find("m");
    return found == stats.unestimated.end() ? 0 : found->second;
  }

  // A service whose first job has ended, whose second one runs and is held before its first step,
  // and for which two more wait.
  void FillQueue() {
    Open();
    engine_->TakeTime("Step_Inference", absl::Seconds(2));
    RunToEnd(Create());
    engine_->Hold("T5_Encoding");
    Create();
    engine_->AwaitHeld("T5_Encoding");
    Create();
    Create();
  }

  // Opens the folder again, with a device that stands still before the first step.
  void Restart() {
    Close();
    engine_->Hold("T5_Encoding");
    Open();
    engine_->AwaitHeld("T5_Encoding");
  }
};

TEST_F(QueueEstimatesTest, TheQueueIsEstimatedAfterARestartAndBeforeTheFirstStep) {
  FillQueue();
  const std::optional<double> before = QueuedSeconds();
  ASSERT_TRUE(before.has_value());
  EXPECT_GE(*before, 12);  // two jobs of three steps of two seconds
  EXPECT_EQ(Unestimated(), 0);
  Restart();
  EXPECT_EQ(Unestimated(), 0);
  EXPECT_NEAR(QueuedSeconds().value_or(0), *before, 1e-6);
}

TEST_F(QueueEstimatesTest, WhatNobodyKnowsIsCounted) {
  FillQueue();
  Close();
  // As if another card had been there.
  std::ofstream(folder_.path() / "data" / "stage_rates")
      << "cuda:9 another card bf16\nStep_Inference 1 1 m\n";
  Restart();
  EXPECT_EQ(QueuedSeconds(), std::nullopt);
  EXPECT_EQ(Unestimated(), 2);
}

TEST(TimeEstimatorRatesTest, LinesThatAreDamagedAreLeftOut) {
  TimeEstimator estimator;
  estimator.TakeOver(
      "Step_Inference 2e-12 3 a model\nStep_Inference\nNothing 1 1 m\nT5_Encoding x 1 m\n"
      "T5_Encoding 0 -1 m\nT5_Encoding 0 nan m\nStep_Inference 1 2 \n");
  EXPECT_EQ(estimator.Learned(), "Step_Inference 2e-12 3 a model\n");
  // What was observed here counts more.
  StagePlan stage{StageKind::kStepInference};
  stage.flops = 1;
  estimator.Observe("m", stage, 5);
  estimator.TakeOver("Step_Inference 9 9 m\n");
  EXPECT_THAT(estimator.Learned(), testing::HasSubstr("Step_Inference 5 5 m\n"));
}

}  // namespace
}  // namespace wan::server
