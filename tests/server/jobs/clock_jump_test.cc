// The wall clock is set forward and back by days while jobs wait and run.
#include <string>

#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/conversion/convert.h"
#include "tests/server/jobs/test_support.h"

namespace wan::server {
namespace {

constexpr char kHeld[] = "Step_2_Inference";

class ClockJumpTest : public ServiceTest, public testing::WithParamInterface<int> {
 protected:
  absl::Duration jump() const { return absl::Hours(24 * GetParam()); }

  static wan::v1::QuoteRequest QuoteFor(const wan::v1::GenerationRequest& request) {
    wan::v1::QuoteRequest quote;
    *quote.mutable_request() = request;
    return quote;
  }
};

TEST_P(ClockJumpTest, ADeadlineIsATimeOfTheWallClock) {
  Open();
  engine_->Hold(kHeld);
  Create();
  engine_->AwaitHeld(kHeld);
  wan::v1::GenerationRequest request = Request();
  *request.mutable_deadline() = ToProto(clock_.Now() + absl::Hours(1));
  const std::string job = Create(request);
  clock_.Jump(jump());
  if (GetParam() < 0) {
    clock_.Advance(absl::Hours(2));
    EXPECT_EQ(Get(job).state(), wan::v1::JOB_STATE_QUEUED) << "it is days away now";
    clock_.Jump(-jump());  // the clock is put right
  }
  const auto events = BlockingReader(*service_, job).Rest();
  EXPECT_EQ(Brief(events.back()), "cancelled deadline exceeded");
  engine_->Release(kHeld);
}

TEST_P(ClockJumpTest, AJobPaysForTheTimeForWhichItHeldTheDevice) {
  Open();
  engine_->Hold(kHeld);
  const std::string job = Create();
  engine_->AwaitHeld(kHeld);
  clock_.Advance(absl::Seconds(5));
  clock_.Jump(jump());
  engine_->Release(kHeld);
  BlockingReader(*service_, job).Rest();
  EXPECT_GE(Get(job).device_seconds(), 5);
  EXPECT_LT(Get(job).device_seconds(), 3600);
}

TEST_P(ClockJumpTest, AJobTakesAsLongAsItTakes) {
  Open();
  engine_->Hold(kHeld);
  const std::string job = Create();
  engine_->AwaitHeld(kHeld);
  clock_.Advance(absl::Seconds(5));
  clock_.Jump(jump());
  engine_->Release(kHeld);
  const auto events = BlockingReader(*service_, job).Rest();
  EXPECT_EQ(events.back().completed().seconds(), 5);
}

TEST_P(ClockJumpTest, TheTimeLeftGoesOnEvenly) {
  engine_->TakeTime("Step_Inference", absl::Seconds(4));
  Open();
  RunToEnd(Create());
  engine_->Hold(kHeld);
  const std::string running = Create();
  engine_->AwaitHeld(kHeld);
  const std::string queued = Create();
  clock_.Advance(absl::Seconds(1));
  const double left = Get(running).eta_seconds();
  const double wait = Get(queued).eta_seconds();
  EXPECT_GT(left, 2);
  clock_.Jump(jump());
  EXPECT_DOUBLE_EQ(Get(running).eta_seconds(), left);
  EXPECT_DOUBLE_EQ(Get(queued).eta_seconds(), wait);
  clock_.Advance(absl::Seconds(2));
  EXPECT_DOUBLE_EQ(Get(running).eta_seconds(), left - 2);
  EXPECT_DOUBLE_EQ(Get(queued).eta_seconds(), wait - 2);
  engine_->Release(kHeld);
  RunToEnd(queued);
  // A jump teaches the estimates nothing.
  EXPECT_LT(service_->Quote(QuoteFor(Request()))->warm_time().p90_seconds(), 60);
}

TEST_P(ClockJumpTest, AWaitInTheQueueIsAsLongAsItIs) {
  Open();
  engine_->Hold(kHeld);
  Create();
  engine_->AwaitHeld(kHeld);
  const std::string job = Create();
  clock_.Advance(absl::Seconds(3));
  clock_.Jump(jump());
  engine_->Release(kHeld);
  RunToEnd(job);
  double waited = -1;
  const absl::StatusOr<wan::v1::JobReport> report = service_->Report(job);
  ASSERT_TRUE(report.ok()) << report.status();
  for (const wan::v1::StageReport& stage : report->stages()) {
    if (stage.stage() == "Queue_Wait") waited = stage.seconds();
  }
  EXPECT_EQ(waited, 3);
}

TEST_P(ClockJumpTest, WhatWasUsedLeavesTheWindowADayAfterIt) {
  Open();
  engine_->Hold(kHeld);
  const std::string job = Create();
  engine_->AwaitHeld(kHeld);
  clock_.Advance(absl::Seconds(5));
  engine_->Release(kHeld);
  BlockingReader(*service_, job).Rest();
  clock_.Jump(jump());
  EXPECT_EQ(service_->UsageOf("")->device_seconds(), 5);
  clock_.Advance(absl::Hours(23));
  EXPECT_EQ(service_->UsageOf("")->device_seconds(), 5);
  clock_.Advance(absl::Hours(2));
  EXPECT_EQ(service_->UsageOf("")->device_seconds(), 0);
}

// Set back: a wait that counted by the wall clock would last for days longer.
TEST_P(ClockJumpTest, ACallerHasItsGraceToComeBack) {
  options_.caller_grace = absl::Seconds(30);
  Open();
  engine_->Hold(kHeld);
  wan::v1::GenerationRequest request = Request();
  request.set_request_id("mine");
  const auto created = calls().Create(request, /*tied_to_caller=*/true, "");
  ASSERT_TRUE(created.ok()) << created.status();
  const std::string job = created->job.name();
  engine_->AwaitHeld(kHeld);
  service_->CallerWentAway(job, /*deadline_passed=*/false);
  clock_.Jump(jump());
  EXPECT_EQ(Get(job).state(), wan::v1::JOB_STATE_RUNNING);
  clock_.Advance(absl::Seconds(30));
  EXPECT_EQ(Brief(BlockingReader(*service_, job).Rest().back()), "cancelled caller went away");
  engine_->Release(kHeld);
}

INSTANTIATE_TEST_SUITE_P(ByDays, ClockJumpTest, testing::Values(-3, 3), [](const auto& days) {
  return days.param < 0 ? std::string("Back") : std::string("Forward");
});

}  // namespace
}  // namespace wan::server
