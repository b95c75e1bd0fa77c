// Which jobs go, in which order, and what keeps one in place.
#include "server/retention/retention.h"

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "engine/api/errors.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/conversion/convert.h"
#include "server/conversion/errors.h"
#include "server/store/sqlite_job_store.h"
#include "tests/fakes/fake_clock.h"
#include "tests/server/store/blocking_writes.h"

namespace wan::server {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

class RetentionTest : public testing::Test {
 protected:
  ~RetentionTest() override { Stop(); }

  // Adds a job that has ended now, with a file of `bytes` bytes.
  void End(const std::string& name, int64_t bytes = 0,
           wan::v1::JobState state = wan::v1::JOB_STATE_COMPLETED) {
    StoredJob stored;
    stored.job.set_name(name);
    stored.job.set_state(wan::v1::JOB_STATE_QUEUED);
    wan::v1::Event event;
    event.set_sequence(1);
    ASSERT_TRUE(InsertInto(*store_, stored, "", std::span(&event, 1)).ok());
    JobChange change{name, stored.job, {}, std::nullopt};
    change.row->set_state(state);
    *change.row->mutable_end_time() = ToProto(clock_.Now());
    if (bytes > 0) change.row->add_artifacts()->set_size_bytes(static_cast<uint64_t>(bytes));
    ASSERT_TRUE(ApplyTo(*store_, std::span(&change, 1)).ok());
  }

  // Starts the retention and waits for the end of its first round.
  void Start(const std::string& completed, const std::string& artifacts = "",
             const std::string& failed = "") {
    RetentionPolicy policy;
    policy.completed = *ParseRetentionRule(completed);
    policy.artifacts = *ParseRetentionRule(artifacts);
    policy.failed = *ParseRetentionRule(failed);
    retention_ = std::make_unique<Retention>(
        policy,
        Retention::Parts{
            .store = *store_,
            .clock = clock_,
            .in_use = [this](const std::string& job) { return in_use_.contains(job); },
            .remove_job = [this](const std::string& job) { return Remove(job); },
            .remove_files = [this](const std::string& job) { return RemoveFiles(job); },
            .tidy =
                [this] {
                  absl::MutexLock lock(&mutex_);
                  ++begun_;
                },
            .on_round = [this](const RetentionRound& round) { rounds_.push_back(round); },
            .on_problem = [this](const absl::Status& problem) { problems_.push_back(problem); }});
    begun_ = 0;
    retention_->Start();
    AwaitRounds(1);
  }
  // Waits until so many rounds have ended, and the thread waits for the next.
  void AwaitRounds(int count) {
    {
      absl::MutexLock lock(&mutex_);
      const auto begun = [&] { return begun_ >= count; };
      mutex_.Await(absl::Condition(&begun));
    }
    clock_.AwaitWaiters(1);
  }
  void Stop() {
    if (retention_ != nullptr) retention_->Stop();
  }

  absl::Status Remove(const std::string& job) {
    if (!refused_.ok()) return refused_;
    removed_.push_back(job);
    return RemoveFrom(*store_, job);
  }
  absl::Status RemoveFiles(const std::string& job) {
    files_removed_.push_back(job);
    absl::StatusOr<StoredJob> stored = store_->Get(job);
    JobChange change{job, stored->job, {}, std::nullopt};
    change.row->mutable_artifacts(0)->mutable_delete_time()->set_seconds(1);
    return ApplyTo(*store_, std::span(&change, 1));
  }

  fakes::FakeClock clock_;
  std::unique_ptr<JobStore> store_ = *OpenInMemoryJobStore();
  std::set<std::string> in_use_;
  absl::Status refused_;
  std::vector<std::string> removed_;
  std::vector<std::string> files_removed_;
  std::vector<RetentionRound> rounds_;
  std::vector<absl::Status> problems_;
  absl::Mutex mutex_;
  int begun_ = 0;
  std::unique_ptr<Retention> retention_;
};

TEST_F(RetentionTest, WithoutRulesNothingGoes) {
  End("jobs/a", 10);
  clock_.Advance(absl::Hours(24 * 3650));
  Start("");
  EXPECT_THAT(removed_, IsEmpty());
  EXPECT_THAT(rounds_, IsEmpty());
}

TEST_F(RetentionTest, WhatIsOlderThanItsStateMayBeGoes) {
  End("jobs/a", 10);
  End("jobs/failed", 0, wan::v1::JOB_STATE_FAILED);
  clock_.Advance(absl::Hours(1));
  End("jobs/b", 10);
  clock_.Advance(absl::Hours(1));
  Start("90m");
  EXPECT_THAT(removed_, ElementsAre("jobs/a"));
  ASSERT_THAT(rounds_, testing::SizeIs(1));
  ASSERT_THAT(rounds_[0].removed, testing::SizeIs(1));
  EXPECT_EQ(rounds_[0].removed[0].reason, RetentionReason::kAge);
  EXPECT_EQ(rounds_[0].removed[0].jobs, 1);
  EXPECT_GT(rounds_[0].removed[0].bytes, 10);
  // The next round comes by itself.
  clock_.Advance(absl::Minutes(31));
  AwaitRounds(2);
  EXPECT_THAT(removed_, ElementsAre("jobs/a", "jobs/b"));
}

TEST_F(RetentionTest, TheOldestGoUntilCountAndBytesHold) {
  for (int i = 0; i < 6; ++i) End(absl::StrCat("jobs/", i), int64_t{1} << 20);
  Start("5,3500KiB");
  EXPECT_THAT(removed_, ElementsAre("jobs/0", "jobs/1", "jobs/2"));
  ASSERT_THAT(rounds_[0].removed, testing::SizeIs(2));
  EXPECT_EQ(rounds_[0].removed[0].reason, RetentionReason::kCount);
  EXPECT_EQ(rounds_[0].removed[0].jobs, 1);
  EXPECT_EQ(rounds_[0].removed[1].reason, RetentionReason::kBytes);
  EXPECT_EQ(rounds_[0].removed[1].jobs, 2);
}

TEST_F(RetentionTest, FilesGoAndTheirJobsStay) {
  for (int i = 0; i < 3; ++i) End(absl::StrCat("jobs/", i), 100);
  Start("", "1");
  EXPECT_THAT(files_removed_, ElementsAre("jobs/0", "jobs/1"));
  EXPECT_THAT(removed_, IsEmpty());
  EXPECT_TRUE(rounds_[0].removed[0].files_only);
  EXPECT_EQ(rounds_[0].removed[0].bytes, 200);
}

TEST_F(RetentionTest, AJobThatIsReadStaysAndNoYoungerOneGoesForIt) {
  for (int i = 0; i < 4; ++i) End(absl::StrCat("jobs/", i), 100);
  in_use_ = {"jobs/0"};
  Start("2");
  EXPECT_THAT(removed_, ElementsAre("jobs/1"));
  Stop();
  in_use_.clear();
  Start("2");
  EXPECT_THAT(removed_, ElementsAre("jobs/1", "jobs/0"));
}

TEST_F(RetentionTest, UnfinishedJobsAreNoneOfItsBusiness) {
  StoredJob stored;
  stored.job.set_name("jobs/waits");
  stored.job.set_state(wan::v1::JOB_STATE_QUEUED);
  wan::v1::Event event;
  event.set_sequence(1);
  ASSERT_TRUE(InsertInto(*store_, stored, "", std::span(&event, 1)).ok());
  for (int i = 0; i < 2; ++i) End(absl::StrCat("jobs/", i));
  clock_.Advance(absl::Hours(9));
  Start("1,1h", "1", "1,1h");
  EXPECT_THAT(removed_, UnorderedElementsAre("jobs/0", "jobs/1"));
}

TEST_F(RetentionTest, ManyGoInRoundsOfAThousand) {
  for (int i = 0; i < 1101; ++i) End(absl::StrCat("jobs/", i));
  Start("1");
  EXPECT_EQ(removed_.size(), 1100);
  ASSERT_THAT(rounds_, testing::SizeIs(2));
  EXPECT_EQ(rounds_[0].removed[0].jobs, 1000);
}

TEST_F(RetentionTest, ADiskThatTakesNoWritesEndsTheRoundAndNothingIsTold) {
  for (int i = 0; i < 3; ++i) End(absl::StrCat("jobs/", i));
  refused_ = WithReason(absl::UnavailableError("full"), kReasonStorageUnavailable);
  Start("1");
  EXPECT_THAT(removed_, IsEmpty());
  EXPECT_THAT(problems_, IsEmpty());
  Stop();
  refused_ = absl::OkStatus();
  Start("1");
  EXPECT_THAT(removed_, ElementsAre("jobs/0", "jobs/1"));
}

TEST_F(RetentionTest, AJumpOfTheWallClockRemovesNothingByAge) {
  End("jobs/a");
  Start("30d");
  clock_.Jump(absl::Hours(24 * 365));
  clock_.Advance(absl::Minutes(1));
  AwaitRounds(2);
  EXPECT_THAT(removed_, IsEmpty());
  clock_.Advance(absl::Hours(20));
  AwaitRounds(3);
  EXPECT_THAT(removed_, IsEmpty());
}

TEST(WallClockGuardTest, AJumpForwardIsBelievedAfterADay) {
  fakes::FakeClock clock;
  WallClockGuard guard(clock);
  EXPECT_TRUE(guard.AgesHold());
  clock.Advance(absl::Hours(100));
  EXPECT_TRUE(guard.AgesHold()) << "time may pass as long as it likes";
  clock.Jump(absl::Hours(48));
  EXPECT_FALSE(guard.AgesHold());
  clock.Advance(absl::Hours(23));
  EXPECT_FALSE(guard.AgesHold());
  clock.Advance(absl::Hours(1));
  EXPECT_TRUE(guard.AgesHold());
  clock.Jump(-absl::Hours(48));
  EXPECT_TRUE(guard.AgesHold()) << "nothing looks older than it is";
  clock.Jump(absl::Hours(48));
  EXPECT_FALSE(guard.AgesHold());
  clock.Jump(-absl::Hours(48));
  EXPECT_TRUE(guard.AgesHold()) << "the clock was put right";
}

TEST_F(RetentionTest, AfterAJumpBackTheFirstToEndAreStillTheFirstToGo) {
  End("jobs/a");
  clock_.Jump(-absl::Hours(48));
  End("jobs/b");
  End("jobs/c");
  Start("2");
  EXPECT_THAT(removed_, ElementsAre("jobs/a"));
}

TEST_F(RetentionTest, ANewPolicyBeginsARoundAtOnce) {
  End("jobs/a", 10);
  End("jobs/b", 10);
  Start("");
  EXPECT_THAT(removed_, IsEmpty());
  RetentionPolicy policy;
  policy.completed.count = 1;
  retention_->SetPolicy(policy);
  AwaitRounds(2);  // no time has passed
  EXPECT_THAT(removed_, ElementsAre("jobs/a"));
  EXPECT_EQ(retention_->policy().completed, policy.completed);
}

}  // namespace
}  // namespace wan::server
