// A drain: no job is accepted or begun any more, the running one ends or stops, all else goes on.
#include <string>
#include <thread>

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
    return [this](const absl::StatusOr<wan::v1::DrainResponse>& outcome) {
      outcome_ = outcome;
      done_.Notify();
    };
  }
  bool HasEnded() const { return done_.HasBeenNotified(); }
  const wan::v1::DrainResponse& Await() {
    EXPECT_TRUE(AwaitStatus().ok()) << outcome_.status();
    static const wan::v1::DrainResponse none;
    return outcome_.ok() ? *outcome_ : none;
  }
  absl::Status AwaitStatus() {
    done_.WaitForNotification();
    return outcome_.status();
  }

 private:
  absl::Notification done_;
  absl::StatusOr<wan::v1::DrainResponse> outcome_;
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

  // Drains while the model "n" is being loaded, and waits until that load and the drain have ended.
  void EndALoadByADrain() {
    engine_->Hold("Model_Initialization");
    absl::Notification ended;
    service_->model_operations().Load({"n", "synthetic:ti2v-5b"}, [&](const auto& model) {
      EXPECT_EQ(ReasonOf(model.status()), kReasonServerStopping);
      ended.Notify();
    });
    engine_->AwaitHeld("Model_Initialization");
    Drained drained;
    service_->Drain(StopMode::kFinish, absl::Hours(1), drained.Done());
    ended.WaitForNotification();
    drained.Await();
  }
};

TEST_F(DrainTest, WithoutARunningJobItIsOverAtOnce) {
  Open();
  EXPECT_FALSE(service_->Stats().draining);
  Drained drained;
  service_->Drain(StopMode::kFinish, absl::Hours(1), drained.Done());
  EXPECT_EQ(drained.Await().ShortDebugString(), "");
  EXPECT_TRUE(service_->Stats().draining);
  const absl::Status refused = calls().Create(Request(), false).status();
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
  EXPECT_EQ(ReasonOf(calls().Create(Request(), false).status()), kReasonServerDraining);
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
  ASSERT_TRUE(calls().Cancel(name, "CancelJob").ok());
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

// Hears what is decided about the running job.
class ChoiceListener final : public StateListener {
 public:
  void OnStopChoice(const StopChoice& choice) override {
    absl::MutexLock lock(&mutex_);
    choice_ = choice;
  }
  StopChoice Await() {
    absl::MutexLock lock(&mutex_);
    const auto there = [this]()
                           ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return choice_.has_value(); };
    mutex_.Await(absl::Condition(&there));
    return *choice_;
  }

 private:
  absl::Mutex mutex_;
  std::optional<StopChoice> choice_ ABSL_GUARDED_BY(mutex_);
};

// A step takes 10 s and encoding a text 3 s; loading the model takes as long as a test says.
class AutoDrainTest : public DrainTest {
 protected:
  AutoDrainTest() { options_.listeners = {&listener_}; }
  ~AutoDrainTest() override { Close(); }  // the listener is told things until then

  // Begins a job that stands in its second step of three, after one that has taught the times.
  std::string CreateInTheMiddle(absl::Duration loading) {
    engine_->TakeTime("Model_Initialization", loading);
    Open();
    engine_->TakeTime("T5_Encoding", absl::Seconds(3));
    engine_->TakeTime("Step_Inference", absl::Seconds(10));
    RunToEnd(Create());
    std::string name = CreateHeld("Step_1_Inference");
    BlockingReader(*service_, name).Until([](const auto& event) {
      return event.has_step_progress();
    });
    return name;
  }

  ChoiceListener listener_;
};

TEST_F(AutoDrainTest, AJobThatNeedsNoMoreThanARestartCostsFinishes) {
  const std::string name = CreateInTheMiddle(absl::Seconds(17));
  Drained drained;
  service_->Drain(StopMode::kAuto, absl::Hours(1), drained.Done());
  const StopChoice choice = listener_.Await();
  EXPECT_EQ(choice.job, name);
  EXPECT_EQ(choice.left, absl::Seconds(20));
  EXPECT_EQ(choice.restart_cost, absl::Seconds(17 + 3)) << "loading, and the text again";
  EXPECT_EQ(choice.may_go_on, absl::Hours(1));
  engine_->Release("Step_1_Inference");
  EXPECT_TRUE(drained.Await().job_ended());
}

TEST_F(AutoDrainTest, AJobThatNeedsMoreThanARestartCostsStopsAtOnce) {
  const std::string name = CreateInTheMiddle(absl::Seconds(16));
  Drained drained;
  service_->Drain(StopMode::kAuto, absl::Hours(1), drained.Done());
  EXPECT_FALSE(drained.Await().job_ended());  // nothing releases the engine
  EXPECT_EQ(listener_.Await().may_go_on, absl::ZeroDuration());
  EXPECT_EQ(Get(name).state(), JOB_STATE_QUEUED);
}

TEST_F(AutoDrainTest, TheStepUnderWayIsComputedAgainAndCounts) {
  CreateInTheMiddle(absl::Seconds(1));
  clock_.Advance(absl::Seconds(8));
  Drained drained;
  service_->Drain(StopMode::kAuto, absl::Hours(1), drained.Done());
  const StopChoice choice = listener_.Await();
  EXPECT_EQ(choice.left, absl::Seconds(12));
  EXPECT_EQ(choice.restart_cost, absl::Seconds(1 + 8 + 3));
  engine_->Release("Step_1_Inference");
  EXPECT_TRUE(drained.Await().job_ended());
}

TEST_F(AutoDrainTest, OfAJobThatIsBeingDecodedTheDecodingAloneIsDoneAgain) {
  const std::string name = CreateInTheMiddle(absl::Seconds(16));
  engine_->Hold("VAE_Decoding");
  engine_->Release("Step_1_Inference");
  engine_->AwaitHeld("VAE_Decoding");
  clock_.Advance(absl::Seconds(5));
  Drained drained;
  service_->Drain(StopMode::kAuto, absl::Hours(1), drained.Done());
  EXPECT_EQ(listener_.Await().restart_cost, absl::Seconds(16 + 5));
  engine_->Release("VAE_Decoding");
  EXPECT_TRUE(drained.Await().job_ended());
  EXPECT_EQ(Get(name).state(), JOB_STATE_COMPLETED);
}

TEST_F(AutoDrainTest, AStopDecidesTheSame) {
  const std::string name = CreateInTheMiddle(absl::Seconds(16));
  service_->Stop(StopMode::kAuto, absl::Hours(1));  // nothing releases the engine
  EXPECT_EQ(Get(name).state(), JOB_STATE_QUEUED);
}

TEST_F(AutoDrainTest, AJobOfACallerHasTheWholeTime) {
  Open();
  engine_->TakeTime("Step_Inference", absl::Seconds(10));  // longer than a restart takes
  engine_->Hold("Step_1_Inference");
  const auto created = calls().Create(Request(), /*tied_to_caller=*/true);
  ASSERT_TRUE(created.ok()) << created.status();
  engine_->AwaitHeld("Step_1_Inference");
  Drained drained;
  service_->Drain(StopMode::kAuto, absl::Minutes(1), drained.Done());
  EXPECT_EQ(listener_.Await().may_go_on, absl::Minutes(1));
  engine_->Release("Step_1_Inference");
  EXPECT_TRUE(drained.Await().job_ended());
  EXPECT_EQ(Get(created->job.name()).state(), JOB_STATE_COMPLETED);
}

TEST_F(DrainTest, ModelTasksEndAtOnceAndNoneBegins) {
  Open();
  EndALoadByADrain();
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
  EXPECT_EQ(ReasonOf(calls().Create(Request(), false).status()), kReasonServerStopping);
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

TEST_F(DrainTest, UndrainLetsTheRunningJobGoOnAndThoseThatWaitBegin) {
  Open();
  const std::string running = CreateHeld("Step_1_Inference");
  const std::string waiting = Create();
  Drained first;
  Drained second;
  service_->Drain(StopMode::kFinish, absl::Hours(1), first.Done());
  service_->Drain(StopMode::kFinish, absl::Hours(1), second.Done());
  const auto undrained = calls().Undrain();
  ASSERT_TRUE(undrained.ok()) << undrained.status();
  EXPECT_EQ(undrained->queued_jobs(), 1);
  EXPECT_FALSE(service_->Stats().draining);
  for (Drained* const drained : {&first, &second}) {
    EXPECT_EQ(drained->AwaitStatus().code(), absl::StatusCode::kAborted);
    EXPECT_EQ(ReasonOf(drained->AwaitStatus()), kReasonDrainTakenBack);
  }
  EXPECT_EQ(Get(running).state(), JOB_STATE_RUNNING);
  engine_->Release("Step_1_Inference");
  EXPECT_EQ(Brief(RunToEnd(running).back()), "completed");
  EXPECT_EQ(Get(running).attempt(), 1);
  EXPECT_EQ(Get(running).lost_attempts_size(), 0);
  EXPECT_EQ(Brief(RunToEnd(waiting).back()), "completed");
  EXPECT_EQ(Brief(RunToEnd(Create()).back()), "completed");
}

TEST_F(DrainTest, AJobThatADrainHasStoppedGoesOnInTheSameProcess) {
  options_.max_attempts = 1;
  Open();
  const std::string name = CreateHeld("Step_1_Inference");
  Drained drained;
  service_->Drain(StopMode::kRequeue, absl::ZeroDuration(), drained.Done());
  EXPECT_FALSE(drained.Await().job_ended());
  engine_->Release("Step_1_Inference");
  ASSERT_TRUE(calls().Undrain().ok());
  EXPECT_THAT(Brief(RunToEnd(name)), Contains("resumed 2"));
  EXPECT_EQ(Get(name).state(), JOB_STATE_COMPLETED);
  EXPECT_EQ(Get(name).lost_attempts_size(), 0);
}

TEST_F(DrainTest, TheThreadThatTellsOfTheDrainsEndCanTakeItBack) {
  Open();
  absl::Notification taken_back;
  absl::StatusOr<wan::v1::UndrainResponse> undrained;
  service_->Drain(StopMode::kFinish, absl::Hours(1), [&](const auto& drained) {
    EXPECT_TRUE(drained.ok()) << drained.status();
    service_->Undrain([&](const auto& response) {
      undrained = response;
      taken_back.Notify();
    });
  });
  taken_back.WaitForNotification();
  EXPECT_TRUE(undrained.ok()) << undrained.status();
  EXPECT_FALSE(service_->Stats().draining);
  EXPECT_EQ(Brief(RunToEnd(Create()).back()), "completed");
}

TEST_F(DrainTest, ADrainThatIsAskedForWhileOneIsTakenBackBeginsAfterwards) {
  Open();
  const std::string name = CreateHeld("Step_1_Inference");
  Drained first;
  Drained second;
  service_->Drain(StopMode::kFinish, absl::Hours(1), first.Done());
  absl::Notification taken_back;
  service_->Undrain([&](const auto& undrained) {
    EXPECT_TRUE(undrained.ok()) << undrained.status();
    taken_back.Notify();
  });
  service_->Drain(StopMode::kRequeue, absl::ZeroDuration(), second.Done());
  taken_back.WaitForNotification();
  EXPECT_EQ(ReasonOf(first.AwaitStatus()), kReasonDrainTakenBack);
  EXPECT_EQ(second.Await().job(), name);
  EXPECT_FALSE(second.Await().job_ended());
}

TEST_F(DrainTest, AKillAfterAnUndrainCountsAgainstTheRunningJob) {
  options_.max_attempts = 1;
  Open();
  const std::string name = CreateHeld("Step_1_Inference");
  Drained drained;
  service_->Drain(StopMode::kFinish, absl::Hours(1), drained.Done());
  ASSERT_TRUE(calls().Undrain().ok());
  service_->AwaitWrites();  // writes what is pending
  const TempFolder killed;
  CopyFolder(folder_.path() / "data", killed.path() / "data");
  Close();
  engine_ = std::make_unique<fakes::FakeEngine>(&clock_);
  OpenIn(killed.path() / "data");
  EXPECT_EQ(Get(name).state(), wan::v1::JOB_STATE_FAILED);
  Close();
}

TEST_F(DrainTest, ThereIsNothingToTakeBackWithoutADrainOrAfterAStop) {
  Open();
  EXPECT_EQ(ReasonOf(calls().Undrain().status()), kReasonNotDraining);
  Drained drained;
  service_->Drain(StopMode::kFinish, absl::Hours(1), drained.Done());
  drained.Await();
  ASSERT_TRUE(calls().Undrain().ok());
  const absl::Status twice = calls().Undrain().status();
  EXPECT_EQ(twice.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(ReasonOf(twice), kReasonNotDraining);
  service_->Stop(StopMode::kRequeue, absl::ZeroDuration());
  EXPECT_EQ(ReasonOf(calls().Undrain().status()), kReasonNotDraining);
  EXPECT_EQ(ReasonOf(calls().Create(Request(), false).status()), kReasonServerStopping);
}

TEST_F(DrainTest, ADrainAfterAnUndrainHasItsOwnModeAndEnd) {
  Open();
  const std::string name = CreateHeld("Step_1_Inference");
  Drained first;
  service_->Drain(StopMode::kFinish, absl::Hours(1), first.Done());
  ASSERT_TRUE(calls().Undrain().ok());
  Drained second;
  service_->Drain(StopMode::kRequeue, absl::ZeroDuration(), second.Done());
  EXPECT_EQ(second.Await().job(), name);  // nothing releases the engine
  EXPECT_FALSE(second.Await().job_ended());
  EXPECT_EQ(ReasonOf(calls().Create(Request(), false).status()), kReasonServerDraining);
}

TEST_F(DrainTest, ALoadThatTheDrainEndedBeginsAnew) {
  Open();
  EndALoadByADrain();
  engine_->Release("Model_Initialization");
  ASSERT_TRUE(calls().Undrain().ok());
  while (!service_->models().IsReady("n")) std::this_thread::yield();
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
  const auto again = calls().Create(request, false);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->job.name(), name);
  EXPECT_FALSE(again->created);
  engine_->Release("Step_1_Inference");
  drained.Await();
}

}  // namespace
}  // namespace wan::server
