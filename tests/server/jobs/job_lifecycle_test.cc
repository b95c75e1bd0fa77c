// What ends a job while the server runs: cancel and deadline, whoever watches it.
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/jobs/lifecycle_fixture.h"

namespace wan::server {
namespace {

namespace fs = std::filesystem;
using testing::Contains;
using testing::ElementsAre;
using testing::Not;
using wan::v1::JOB_STATE_CANCELLED;
using wan::v1::JOB_STATE_COMPLETED;
using wan::v1::JOB_STATE_QUEUED;

TEST_F(LifecycleTest, CancelEndsAQueuedJobAtOnce) {
  Open();
  CreateHeld("T5_Encoding");
  const std::string name = Create();
  const auto answer = calls().Cancel(name, "CancelJob");
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->state(), JOB_STATE_CANCELLED);
  EXPECT_EQ(answer->attempt(), 0);
  EXPECT_EQ(answer->error().code(), static_cast<int>(absl::StatusCode::kCancelled));
  EXPECT_TRUE(answer->has_end_time());
  EXPECT_FALSE(answer->has_start_time());
  EXPECT_THAT(Brief(RunToEnd(name)), ElementsAre("queued 0", "cancelled CancelJob"));
  EXPECT_EQ(service_->Stats().queued_total, 0);
}

TEST_F(LifecycleTest, CancelEndsARunningJobWithinOneStep) {
  Open();
  const std::string name = CreateHeld("Step_1_Inference");
  const auto answer = calls().Cancel(name, "CancelJob");
  ASSERT_TRUE(answer.ok()) << answer.status();
  const std::vector<std::string> events = Brief(RunToEnd(name));
  EXPECT_EQ(events.back(), "cancelled CancelJob");
  EXPECT_THAT(events, Not(Contains("start Step_2_Loading")));
  EXPECT_EQ(Get(name).state(), JOB_STATE_CANCELLED);
  engine_->Release("Step_1_Inference");
  EXPECT_EQ(Brief(RunToEnd(Create()).back()), "completed");
}

TEST_F(LifecycleTest, AcceptedCancelHoldsEvenIfTheEngineIsDone) {
  Open();
  const std::string name = CreateHeld("Video_Encoding");  // nothing looks at the stop behind it
  ASSERT_TRUE(calls().Cancel(name, "CancelJob").ok());
  EXPECT_EQ(Brief(RunToEnd(name).back()), "cancelled CancelJob");
  EXPECT_EQ(Get(name).artifacts_size(), 0);
  Close();
  EXPECT_TRUE(fs::is_empty(options_.data_dir / "artifacts"));
  EXPECT_TRUE(fs::is_empty(options_.data_dir / "staging"));
}

TEST_F(LifecycleTest, CancelOfAnEndedJobChangesNothing) {
  Open();
  const std::string name = Create();
  RunToEnd(name);
  const wan::v1::Job before = Get(name);
  const auto answer = calls().Cancel(name, "CancelJob");
  ASSERT_TRUE(answer.ok());
  EXPECT_EQ(answer->SerializeAsString(), before.SerializeAsString());
}

TEST_F(LifecycleTest, TheFirstReasonHolds) {
  Open();
  const std::string name = CreateHeld("Step_1_Inference", RequestWithDeadline(absl::Seconds(10)));
  ASSERT_TRUE(calls().Cancel(name, "first").ok());
  ASSERT_TRUE(calls().Cancel(name, "second").ok());
  EXPECT_EQ(Brief(RunToEnd(name).back()), "cancelled first");
}

TEST_F(LifecycleTest, DeadlineEndsAQueuedJob) {
  Open();
  CreateHeld("T5_Encoding");
  const std::string name = Create(RequestWithDeadline(absl::Seconds(10)));
  clock_.Advance(absl::Seconds(9));
  EXPECT_EQ(Get(name).state(), JOB_STATE_QUEUED);
  clock_.Advance(absl::Seconds(1));
  EXPECT_THAT(Brief(RunToEnd(name)), ElementsAre("queued 0", "cancelled deadline exceeded"));
  EXPECT_EQ(Get(name).error().code(), static_cast<int>(absl::StatusCode::kDeadlineExceeded));
}

TEST_F(LifecycleTest, DeadlineEndsARunningJobWithinOneStep) {
  Open();
  const std::string name = CreateHeld("Step_0_Inference", RequestWithDeadline(absl::Seconds(10)));
  clock_.Advance(absl::Seconds(10));
  const std::vector<std::string> events = Brief(RunToEnd(name));
  EXPECT_EQ(events.back(), "cancelled deadline exceeded");
  EXPECT_THAT(events, Not(Contains("start Step_1_Loading")));
}

TEST_F(LifecycleTest, DeadlineOfAnEndedJobIsForgotten) {
  Open();
  const std::string name = Create(RequestWithDeadline(absl::Seconds(10)));
  RunToEnd(name);
  clock_.Advance(absl::Seconds(20));
  EXPECT_EQ(Brief(RunToEnd(Create()).back()), "completed");
  EXPECT_EQ(Get(name).state(), JOB_STATE_COMPLETED);
}

TEST_F(LifecycleTest, ManyWatchersAndOnesThatGoAwayDoNotHarmTheJob) {
  Open();
  const std::string name = CreateHeld("Step_1_Inference");
  std::vector<std::unique_ptr<BlockingReader>> readers;
  for (int i = 0; i < 50; ++i) {
    readers.push_back(std::make_unique<BlockingReader>(*service_, name, i));
  }
  // One that never reads, one that leaves in the middle, one that leaves while it waits.
  BlockingReader idle(*service_, name);
  {
    BlockingReader leaves(*service_, name);
    leaves.Next();
  }
  {
    auto waits = service_->Watch(name, 0, [] {});
    wan::v1::Event event;
    while ((*waits)->TryNext(&event) == EventCursor::Next::kEvent) {
    }
  }
  engine_->Release("Step_1_Inference");
  const std::vector<wan::v1::Event> all = RunToEnd(name);
  EXPECT_EQ(Brief(all.back()), "completed");
  for (size_t i = 0; i < readers.size(); ++i) {
    const std::vector<wan::v1::Event> rest = readers[i]->Rest();
    ASSERT_EQ(rest.size(), i < all.size() ? all.size() - i : 0) << i;
    for (const wan::v1::Event& event : rest) {
      EXPECT_EQ(event.SerializeAsString(), all[event.sequence() - 1].SerializeAsString());
    }
  }
  EXPECT_EQ(Brief(idle.Rest()), Brief(all));
}

TEST_F(LifecycleTest, EndedJobsReplayFromEverySequence) {
  Open();
  const std::string name = Create();
  const std::vector<wan::v1::Event> all = RunToEnd(name);
  KillAndRestart();  // so that the store alone knows them
  for (size_t after = 0; after <= all.size() + 1; ++after) {
    const std::vector<wan::v1::Event> rest =
        BlockingReader(*service_, name, static_cast<int64_t>(after)).Rest();
    ASSERT_EQ(rest.size(), after < all.size() ? all.size() - after : 0);
    if (!rest.empty()) {
      EXPECT_EQ(rest.front().sequence(), static_cast<int64_t>(after) + 1);
    }
  }
}

TEST_F(LifecycleTest, ASecondServerOnTheFolderIsRefused) {
  Open();
  const auto second = JobService::Open(options_, {engine_.get()}, clock_);
  EXPECT_EQ(second.status().code(), absl::StatusCode::kUnavailable) << second.status();
}

}  // namespace
}  // namespace wan::server
