#include "server/jobs/progress_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "tests/fakes/fake_clock.h"

namespace wan::server {
namespace {

using ::testing::HasSubstr;

const Stage kStep0(StageKind::kStepInference, 0);
const Stage kStep1(StageKind::kStepInference, 1);
const std::vector<StagePlan> kStages = {{StageKind::kT5Encoding, std::nullopt},
                                        {kStep0, 1000},
                                        {kStep1, 1000},
                                        {StageKind::kVaeDecoding, 500}};

class ProgressWatchTest : public ::testing::Test {
 protected:
  // A sink of an attempt of which the plan is known.
  std::unique_ptr<ProgressSink> NewSink() {
    auto sink = std::make_unique<ProgressSink>("jobs/a", "m", estimator_, watch_);
    sink->SetPlan(kStages);
    return sink;
  }

  void Start(ProgressSink& sink, const Stage& stage) {
    sink.OnSpanStart({stage, clock_.Now(), nullptr});
  }
  void End(ProgressSink& sink, const Stage& stage) {
    SpanRecord record{.stage = stage};
    sink.OnSpanEnd(record);
  }

  fakes::FakeClock clock_;
  TimeEstimator estimator_;
  ProgressWatch watch_{clock_};
};

TEST_F(ProgressWatchTest, AStepIsStuckAfterTenTimesItsEstimate) {
  estimator_.Observe("m", kStages[1], 200);
  const auto sink = NewSink();
  Start(*sink, kStep1);
  clock_.Advance(absl::Seconds(2000));
  EXPECT_TRUE(watch_.Check().ok()) << watch_.Check();
  clock_.Advance(absl::Seconds(1));
  const absl::Status stuck = watch_.Check();
  EXPECT_TRUE(absl::IsDeadlineExceeded(stuck));
  EXPECT_THAT(std::string(stuck.message()),
              HasSubstr("Step_1_Inference of jobs/a makes no progress: it has run for 2001 s and "
                        "should take 200.0 s"));
  End(*sink, kStep1);
  EXPECT_TRUE(watch_.Check().ok()) << "it went on after all";
}

TEST_F(ProgressWatchTest, AShortStepHasAQuarterOfAnHour) {
  estimator_.Observe("m", kStages[1], 1);
  const auto sink = NewSink();
  Start(*sink, kStep0);
  clock_.Advance(absl::Minutes(15));
  EXPECT_TRUE(watch_.Check().ok());
  clock_.Advance(absl::Seconds(1));
  EXPECT_FALSE(watch_.Check().ok());
}

TEST_F(ProgressWatchTest, EachStageHasItsOwnTime) {
  estimator_.Observe("m", kStages[1], 1);
  const auto sink = NewSink();
  for (const Stage& stage : {kStep0, kStep1, Stage(StageKind::kVaeDecoding)}) {
    Start(*sink, stage);
    clock_.Advance(absl::Minutes(14));
    EXPECT_TRUE(watch_.Check().ok());
    End(*sink, stage);
  }
}

TEST_F(ProgressWatchTest, WhatCannotBeEstimatedIsNeverStuck) {
  const auto sink = NewSink();
  Start(*sink, kStep0);  // no step of the model was seen
  estimator_.Observe("m", kStages[1], 1);
  Start(*sink, StageKind::kT5Encoding);   // the plan counts no operations of it
  Start(*sink, StageKind::kStepLoading);  // not in the plan
  Start(*sink, StageKind::kTotalExecution);
  clock_.Advance(absl::Hours(1000));
  EXPECT_TRUE(watch_.Check().ok()) << watch_.Check();
}

TEST_F(ProgressWatchTest, AnAttemptThatHasEndedIsNotStuck) {
  estimator_.Observe("m", kStages[1], 1);
  auto sink = NewSink();
  Start(*sink, kStep0);
  clock_.Advance(absl::Hours(1));
  EXPECT_FALSE(watch_.Check().ok());
  sink.reset();
  EXPECT_TRUE(watch_.Check().ok());
}

// Its estimate may be that of the steps' rate, and an autoencoder on a CPU is slower by far.
TEST_F(ProgressWatchTest, ADecodingIsNeverStuck) {
  estimator_.Observe("m", kStages[1], 1);
  const auto sink = NewSink();
  Start(*sink, StageKind::kVaeDecoding);
  clock_.Advance(absl::Hours(10));
  EXPECT_TRUE(watch_.Check().ok()) << watch_.Check();
}

TEST_F(ProgressWatchTest, ALeapOfTheWallClockIsNoTime) {
  estimator_.Observe("m", kStages[1], 1);
  const auto sink = NewSink();
  Start(*sink, kStep0);
  clock_.Jump(absl::Hours(5));
  EXPECT_TRUE(watch_.Check().ok());
}

}  // namespace
}  // namespace wan::server
