// What jobs of several groups have left after a kill -9, a loss or a restart, and what their owners
// may run at a time.
#include <fstream>
#include <memory>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/quota/quotas.h"
#include "tests/server/jobs/groups_fixture.h"

namespace wan::server {
namespace {

using testing::Contains;
using testing::IsEmpty;
using testing::SizeIs;
using wan::v1::JOB_STATE_COMPLETED;
using wan::v1::JOB_STATE_QUEUED;
using wan::v1::JOB_STATE_RUNNING;

class GroupsRestartTest : public GroupsTest {
 protected:
  // Two jobs that run, one in each group, with a savepoint behind two of their three steps.
  void RunTwoToTheirLastStep() {
    OpenGroups();
    HoldAll("Step_2_Inference");
    first_ = Create(Request("first"));
    second_ = Create(Request("second"));
    AwaitAllHeld("Step_2_Inference");
    for (const std::string& job : {first_, second_}) losses_.AwaitSavepoint(job, 2);
  }

  // Kills the server, and serves the same folder with `count` groups.
  void KillAndServeWith(int count) {
    service_->AwaitWrites();  // waits until the log is written
    const std::filesystem::path copy = folder_.path() / "killed";
    CopyFolder(folder_.path() / "data", copy);
    MakeEngines(count);
    OpenGroupsIn(copy);
  }

  std::string first_;
  std::string second_;
};

TEST_F(GroupsRestartTest, KilledJobsOfBothGroupsGoOnFromTheirSavepoints) {
  RunTwoToTheirLastStep();
  KillAndServeWith(2);
  for (const std::string& job : {first_, second_}) {
    EXPECT_THAT(Brief(RunToEnd(job)), Contains("resumed 2"));
    EXPECT_EQ(Get(job).state(), JOB_STATE_COMPLETED);
    EXPECT_EQ(Get(job).attempt(), 2);
    EXPECT_THAT(Get(job).lost_attempts(), SizeIs(1));
  }
}

TEST_F(GroupsRestartTest, OneGroupGoesOnWithTheJobsOfTwo) {
  RunTwoToTheirLastStep();
  KillAndServeWith(1);
  for (const std::string& job : {first_, second_}) {
    EXPECT_THAT(Brief(RunToEnd(job)), Contains("resumed 2"));
    EXPECT_EQ(Get(job).group(), 0);
  }
}

TEST_F(GroupsRestartTest, AStopKeepsTheSavepointsOfBothGroups) {
  RunTwoToTheirLastStep();
  Close();
  MakeEngines(2);
  OpenGroups();
  for (const std::string& job : {first_, second_}) {
    EXPECT_THAT(Brief(RunToEnd(job)), Contains("resumed 3")) << "the step that ran ends first";
    EXPECT_THAT(Get(job).lost_attempts(), IsEmpty()) << "a stop is no loss";
  }
}

TEST_F(GroupsRestartTest, ALostGroupLeavesTheAttemptOfAnotherAlone) {
  RunTwoToTheirLastStep();
  EngineOf(second_).LoseDeviceAt("VAE_Decoding");
  EngineOf(second_).Release("Step_2_Inference");
  losses_.AwaitGroup();
  EXPECT_EQ(Get(first_).state(), JOB_STATE_RUNNING);
  EXPECT_EQ(Get(second_).state(), JOB_STATE_QUEUED) << "its group is gone, the other one is busy";
  ReleaseAll("Step_2_Inference");
  EXPECT_EQ(Brief(RunToEnd(first_)).back(), "completed");
  EXPECT_EQ(Get(first_).attempt(), 1);
  EXPECT_THAT(Get(first_).lost_attempts(), IsEmpty());
  EXPECT_THAT(Brief(RunToEnd(second_)), Contains("resumed 3"));
  EXPECT_EQ(Get(second_).group(), Get(first_).group());
}

class GroupsQuotaTest : public GroupsTest {
 protected:
  ~GroupsQuotaTest() override { Close(); }

  void OpenWith(const std::string& quotas) {
    std::ofstream(folder_.path() / "quotas") << quotas;
    auto opened = Quotas::Open(folder_.path() / "quotas", {[this] { service_->QuotasChanged(); }});
    ASSERT_TRUE(opened.ok()) << opened.status();
    quotas_ = *std::move(opened);
    options_.quotas = quotas_.get();
    OpenGroups();
  }
  std::string CreateFor(const std::string& owner) {
    const auto created = calls().Create(Request(), /*tied_to_caller=*/false, owner);
    EXPECT_TRUE(created.ok()) << created.status();
    return created.ok() ? created->job.name() : "";
  }
  int RunningOf(const std::string& owner) { return service_->UsageOf(owner)->running_jobs(); }

  std::unique_ptr<Quotas> quotas_;
};

TEST_F(GroupsQuotaTest, RunningJobsAreCountedOverAllGroups) {
  OpenWith("alice: running_jobs=1");
  HoldAll("T5_Encoding");
  const std::string first = CreateFor("alice");
  AwaitRunning(first);
  const std::string second = CreateFor("alice");
  const std::string of_bob = CreateFor("bob");
  OtherThan(first).AwaitHeld("T5_Encoding");
  EXPECT_EQ(Get(of_bob).state(), JOB_STATE_RUNNING) << "the other group passes over alice's job";
  EXPECT_EQ(Get(second).state(), JOB_STATE_QUEUED);
  EXPECT_EQ(RunningOf("alice"), 1);
  EXPECT_EQ(RunningOf("bob"), 1);
  OtherThan(first).Release("T5_Encoding");
  RunToEnd(of_bob);
  EXPECT_EQ(Get(second).state(), JOB_STATE_QUEUED) << "though its group is idle";
  EngineOf(first).Release("T5_Encoding");
  RunToEnd(first);
  EXPECT_EQ(Brief(RunToEnd(second)).back(), "completed");
  EXPECT_EQ(RunningOf("alice"), 0);
}

TEST_F(GroupsQuotaTest, TwoJobsRunAtATimeIfTheQuotaIsTwo) {
  OpenWith("alice: running_jobs=2");
  HoldAll("T5_Encoding");
  const std::string first = CreateFor("alice");
  const std::string second = CreateFor("alice");
  AwaitAllHeld("T5_Encoding");
  EXPECT_EQ(RunningOf("alice"), 2);
  ReleaseAll("T5_Encoding");
  for (const std::string& job : {first, second}) RunToEnd(job);
}

TEST_F(GroupsQuotaTest, AJobThatLosesItsGroupNoLongerRuns) {
  OpenWith("alice: running_jobs=1");
  HoldAll("T5_Encoding");
  const std::string job = CreateFor("alice");
  AwaitRunning(job);
  const int lost = Get(job).group();
  OtherThan(job).Release("T5_Encoding");
  EngineOf(job).LoseDeviceAt("VAE_Decoding");
  EngineOf(job).Release("T5_Encoding");
  EXPECT_EQ(Brief(RunToEnd(job)).back(), "completed") << "its first attempt no longer counts";
  EXPECT_EQ(Get(job).group(), 1 - lost);
  EXPECT_EQ(RunningOf("alice"), 0);
}

}  // namespace
}  // namespace wan::server
