// What a server that is told to stop makes of its jobs: it lets them finish, or runs them again.
#include <atomic>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/conversion/errors.h"
#include "tests/server/jobs/lifecycle_fixture.h"

namespace wan::server {
namespace {

namespace fs = std::filesystem;
using testing::Contains;
using testing::Not;
using testing::SizeIs;
using wan::v1::JOB_STATE_COMPLETED;
using wan::v1::JOB_STATE_QUEUED;

constexpr char kStopped[] = "requeued server stopped while the job was running";

TEST_F(LifecycleTest, AServerThatIsToldToStopCountsAgainstNoJob) {
  options_.max_attempts = 1;
  Open();
  const std::string name = CreateHeld("T5_Encoding");
  for (int attempt = 2; attempt <= 4; ++attempt) {
    service_->Stop(StopMode::kRequeue, absl::ZeroDuration());
    Close();
    Open();
    engine_->AwaitHeld("T5_Encoding");
    EXPECT_EQ(Get(name).attempt(), attempt);
    EXPECT_EQ(Get(name).lost_attempts_size(), 0);
  }
  engine_->Release("T5_Encoding");
  EXPECT_EQ(Brief(RunToEnd(name).back()), "completed");
}

// The supervisor's patience may end before the grace time does.
TEST_F(LifecycleTest, AKillAfterTheStopBeganCountsAgainstNoJob) {
  options_.max_attempts = 1;
  Open();
  const std::string name = CreateHeld("Step_1_Inference");
  std::thread stopper([&] { service_->Stop(StopMode::kFinish, absl::Hours(1)); });
  while (ReasonOf(calls().Create(Request(), false).status()) != kReasonServerStopping) {
    std::this_thread::yield();
  }
  const fs::path copy = CopyOfData("killed_in_grace");
  engine_->Release("Step_1_Inference");
  stopper.join();
  Close();
  OpenIn(copy);
  EXPECT_EQ(Brief(RunToEnd(name).back()), "completed");
  EXPECT_EQ(Get(name).lost_attempts_size(), 0);
}

TEST_F(LifecycleTest, StopRequeuesAndTheNextProcessRunsAgain) {
  Open();
  const std::string name = CreateHeld("Step_1_Inference");
  const std::string waiting = Create();
  {
    BlockingReader watcher(*service_, name);
    service_->Stop(StopMode::kRequeue, absl::ZeroDuration());
    const std::vector<std::string> events = Brief(watcher.Rest());
    EXPECT_THAT(events, Contains(kStopped));
    EXPECT_THAT(events, Not(Contains("start Step_2_Loading")));
    EXPECT_EQ(watcher.cursor().status().code(), absl::StatusCode::kUnavailable);
  }
  EXPECT_EQ(Get(name).state(), JOB_STATE_QUEUED);
  EXPECT_EQ(ReasonOf(calls().Create(Request(), false).status()), kReasonServerStopping);
  EXPECT_EQ(service_->Report(name)->attempt(), 1);
  Close();
  engine_->Release("Step_1_Inference");
  Open();
  EXPECT_EQ(RunToEnd(name).back().attempt(), 2);
  EXPECT_EQ(RunToEnd(waiting).back().attempt(), 1);
  ExpectNoHoles(RunToEnd(name));
}

TEST_F(LifecycleTest, StopLetsTheRunningJobFinish) {
  Open();
  const std::string name = CreateHeld("Step_1_Inference");
  const std::string waiting = Create();
  std::thread stopper([&] { service_->Stop(StopMode::kFinish, absl::Hours(1)); });
  // Until the stop has begun, which a full queue is not.
  while (ReasonOf(calls().Create(Request(), false).status()) != kReasonServerStopping) {
    std::this_thread::yield();
  }
  engine_->Release("Step_1_Inference");
  stopper.join();
  EXPECT_EQ(Get(name).state(), JOB_STATE_COMPLETED);
  EXPECT_EQ(Get(waiting).state(), JOB_STATE_QUEUED);
  EXPECT_THAT(engine_->Generated(), SizeIs(1));
}

TEST_F(LifecycleTest, StopRequeuesWhatDoesNotFinishInTime) {
  Open();
  const std::string name = CreateHeld("Step_1_Inference");
  std::atomic<bool> stopped = false;
  std::thread stopper([&] {
    service_->Stop(StopMode::kFinish, absl::Seconds(30));
    stopped = true;
  });
  while (!stopped) clock_.Advance(absl::Seconds(1));
  stopper.join();
  EXPECT_EQ(Get(name).state(), JOB_STATE_QUEUED);
}

TEST_F(LifecycleTest, StopKeepsWorkThatIsDone) {
  Open();
  const std::string name = CreateHeld("Video_Encoding");  // nothing looks at the stop behind it
  service_->Stop(StopMode::kRequeue, absl::ZeroDuration());
  EXPECT_EQ(Get(name).state(), JOB_STATE_COMPLETED);
}

TEST_F(LifecycleTest, StopEndsTheRunningJobOfACaller) {
  Open();
  engine_->Hold("Step_1_Inference");
  const auto created = calls().Create(Request(), true);
  ASSERT_TRUE(created.ok());
  engine_->AwaitHeld("Step_1_Inference");
  service_->Stop(StopMode::kRequeue, absl::ZeroDuration());
  EXPECT_EQ(Brief(RunToEnd(created->job.name()).back()),
            "cancelled caller went away (server stopped)");
}

TEST_F(LifecycleTest, StopEndsCursorsThatWait) {
  Open();
  CreateHeld("T5_Encoding");
  const std::string waiting = Create();
  BlockingReader watcher(*service_, waiting);
  EXPECT_EQ(Brief(*watcher.Next()), "queued 0");
  service_->Stop(StopMode::kRequeue, absl::ZeroDuration());
  watcher.Rest();
  EXPECT_EQ(ReasonOf(watcher.cursor().status()), kReasonServerStopping);
  // One that comes later reads what there is, and ends the same way.
  BlockingReader late(*service_, waiting);
  EXPECT_EQ(Brief(*late.Next()), "queued 0");
  late.Rest();
  EXPECT_EQ(late.cursor().status().code(), absl::StatusCode::kUnavailable);
}

}  // namespace
}  // namespace wan::server
