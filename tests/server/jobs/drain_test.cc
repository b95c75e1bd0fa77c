// A drain: no job is accepted or begun any more, the running one ends or stops, all else goes on.
#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "absl/synchronization/notification.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/conversion/errors.h"
#include "tests/server/jobs/test_support.h"

namespace wan::server {
namespace {

using testing::Contains;
using wan::v1::JOB_STATE_COMPLETED;
using wan::v1::JOB_STATE_QUEUED;
using wan::v1::JOB_STATE_RUNNING;

constexpr char kDrained[] = "requeued server was drained while the job was running";

// The outcome of a drain, when it is there.
class Drained {
 public:
  auto Done() {
    return [this](const wan::v1::DrainResponse& outcome) {
      outcome_ = outcome;
      done_.Notify();
    };
  }
  bool HasEnded() const { return done_.HasBeenNotified(); }
  const wan::v1::DrainResponse& Await() {
    done_.WaitForNotification();
    return outcome_;
  }

 private:
  absl::Notification done_;
  wan::v1::DrainResponse outcome_;
};

class DrainTest : public ServiceTest {
 protected:
  DrainTest() { options_.savepoint_interval = absl::Hours(1); }

  std::string CreateHeld(const std::string& stage) {
    engine_->Hold(stage);
    std::string name = Create();
    engine_->AwaitHeld(stage);
    return name;
  }
};

TEST_F(DrainTest, WithoutARunningJobItIsOverAtOnce) {
  Open();
  EXPECT_FALSE(service_->Stats().draining);
  Drained drained;
  service_->Drain(StopMode::kFinish, absl::Hours(1), drained.Done());
  EXPECT_EQ(drained.Await().ShortDebugString(), "");
  EXPECT_TRUE(service_->Stats().draining);
  const absl::Status refused = service_->Create(Request(), false).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(ReasonOf(refused), kReasonServerDraining);
  EXPECT_TRUE(RetryDelayOf(refused).has_value());
}

TEST_F(DrainTest, TheRunningJobFinishesAndThoseThatWaitStayInTheQueue) {
  Open();
  const std::string name = CreateHeld("Step_1_Inference");
  const std::string waiting = Create();
  Drained first;
  Drained second;
  service_->Drain(StopMode::kFinish, absl::Hours(1), first.Done());
  EXPECT_EQ(ReasonOf(service_->Create(Request(), false).status()), kReasonServerDraining);
  // The mode of the first call holds.
  service_->Drain(StopMode::kRequeue, absl::ZeroDuration(), second.Done());
  EXPECT_FALSE(first.HasEnded());
  EXPECT_FALSE(second.HasEnded());
  EXPECT_EQ(Get(name).state(), JOB_STATE_RUNNING);
  engine_->Release("Step_1_Inference");
  for (Drained* const drained : {&first, &second}) {
    EXPECT_EQ(drained->Await().job(), name);
    EXPECT_TRUE(drained->Await().job_ended());
    EXPECT_EQ(drained->Await().queued_jobs(), 1);
  }
  EXPECT_EQ(Get(name).state(), JOB_STATE_COMPLETED);
  EXPECT_EQ(Get(waiting).state(), JOB_STATE_QUEUED);
  // One that comes later has the same end.
  Drained late;
  service_->Drain(StopMode::kFinish, absl::Hours(1), late.Done());
  EXPECT_TRUE(late.HasEnded());
  EXPECT_EQ(late.Await().job(), name);
}

TEST_F(DrainTest, WhatDoesNotFinishInTimeStopsAtASavepoint) {
  Open();
  const std::string name = CreateHeld("Step_1_Inference");
  BlockingReader watcher(*service_, name);
  Drained drained;
  service_->Drain(StopMode::kFinish, absl::Seconds(30), drained.Done());
  while (!drained.HasEnded()) clock_.Advance(absl::Seconds(1));
  EXPECT_EQ(drained.Await().job(), name);
  EXPECT_FALSE(drained.Await().job_ended());
  EXPECT_EQ(drained.Await().queued_jobs(), 1);
  EXPECT_EQ(Get(name).state(), JOB_STATE_QUEUED);
  // Watching goes on: the stream has the requeueing, and no end.
  watcher.Until([](const wan::v1::Event& event) { return Brief(event) == kDrained; });
  EXPECT_EQ(Brief(*watcher.Next()), "queued 0");
  wan::v1::Event event;
  EXPECT_EQ(watcher.cursor().TryNext(&event), EventCursor::Next::kPending);
  // A change that comes later reaches it.
  ASSERT_TRUE(service_->Cancel(name, "CancelJob").ok());
  EXPECT_EQ(Brief(*watcher.Next()), "cancelled CancelJob");
}

TEST_F(DrainTest, ADrainedJobGoesOnInTheNextProcessAndHasLostNoAttempt) {
  options_.max_attempts = 1;
  Open();
  const std::string name = CreateHeld("Step_1_Inference");
  Drained drained;
  service_->Drain(StopMode::kRequeue, absl::ZeroDuration(), drained.Done());
  EXPECT_FALSE(drained.Await().job_ended());
  Close();
  engine_ = std::make_unique<fakes::FakeEngine>(&clock_);
  Open();
  EXPECT_THAT(Brief(RunToEnd(name)), Contains("resumed 2"));
  EXPECT_EQ(Get(name).state(), JOB_STATE_COMPLETED);
  EXPECT_EQ(Get(name).lost_attempts_size(), 0);
}

TEST_F(DrainTest, ModelTasksEndAtOnceAndNoneBegins) {
  Open();
  engine_->Hold("Model_Initialization");
  absl::Notification ended;
  service_->models().Load({"n", "synthetic:ti2v-5b"}, [&](const auto& model) {
    EXPECT_EQ(ReasonOf(model.status()), kReasonServerStopping);
    ended.Notify();
  });
  engine_->AwaitHeld("Model_Initialization");
  Drained drained;
  service_->Drain(StopMode::kFinish, absl::Hours(1), drained.Done());
  ended.WaitForNotification();
  drained.Await();
}

TEST_F(DrainTest, AStopShortensADrainWhichIsAnsweredBeforeTheStopIsOver) {
  Open();
  const std::string name = CreateHeld("Step_1_Inference");
  Drained drained;
  service_->Drain(StopMode::kFinish, absl::Hours(10), drained.Done());
  service_->Stop(StopMode::kRequeue, absl::ZeroDuration());
  ASSERT_TRUE(drained.HasEnded());
  EXPECT_EQ(drained.Await().job(), name);
  EXPECT_FALSE(drained.Await().job_ended());
  EXPECT_EQ(Get(name).state(), JOB_STATE_QUEUED);
  EXPECT_EQ(ReasonOf(service_->Create(Request(), false).status()), kReasonServerStopping);
}

TEST_F(DrainTest, ADrainOfAStoppedServerIsOver) {
  Open();
  const std::string name = CreateHeld("Step_1_Inference");
  service_->Stop(StopMode::kRequeue, absl::ZeroDuration());
  Drained drained;
  service_->Drain(StopMode::kFinish, absl::Hours(1), drained.Done());
  EXPECT_EQ(drained.Await().job(), "");
  EXPECT_EQ(drained.Await().queued_jobs(), 1);
}

TEST_F(DrainTest, AnAcceptedRequestIsStillFoundByItsId) {
  Open();
  engine_->Hold("Step_1_Inference");
  wan::v1::GenerationRequest request = Request();
  request.set_request_id("once");
  const std::string name = Create(request);
  engine_->AwaitHeld("Step_1_Inference");
  Drained drained;
  service_->Drain(StopMode::kFinish, absl::Hours(1), drained.Done());
  const auto again = service_->Create(request, false);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->job.name(), name);
  EXPECT_FALSE(again->created);
  engine_->Release("Step_1_Inference");
  drained.Await();
}

}  // namespace
}  // namespace wan::server
