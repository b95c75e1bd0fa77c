// What every JobStore does with what belongs to jobs: reports of their ends, the files of their
// models, what they have used and what they take.
#include <map>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/store/job_store_conformance.h"

namespace wan::server {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;
using testing::SizeIs;
using wan::v1::JOB_STATE_COMPLETED;
using wan::v1::JOB_STATE_FAILED;
using wan::v1::JOB_STATE_RUNNING;

class JobBelongingsTest : public JobStoreTest {};

TEST_P(JobBelongingsTest, TheEndOfAJobWithAWebhookIsReportedOnceAndOutlivesTheJob) {
  StoredJob job = NewJob("jobs/a");
  job.job.mutable_request()->set_model("m");
  job.job.mutable_request()->set_prompt("a secret cat");
  job.job.mutable_request()->set_webhook_url("https://h/x");
  (*job.job.mutable_request()->mutable_labels())["team"] = "video";
  job.job.set_owner("alice");
  ASSERT_TRUE(Insert(job).ok());
  ASSERT_TRUE(Insert(NewJob("jobs/quiet")).ok());
  ASSERT_TRUE(Apply(NewState(job, JOB_STATE_RUNNING, 2)).ok());
  ASSERT_TRUE(Apply(NewState(NewJob("jobs/quiet"), JOB_STATE_RUNNING, 2)).ok());
  EXPECT_THAT(*store_->webhooks().Webhooks(0, 10), IsEmpty()) << "it has not ended";
  for (const StoredJob& ended : {job, NewJob("jobs/quiet")}) {
    JobChange end = NewState(ended, JOB_STATE_COMPLETED, 3);
    end.events.back().mutable_completed();
    ASSERT_TRUE(Apply(end).ok());
    // As a change of the labels of an ended job is.
    ASSERT_TRUE(Apply(NewState(ended, JOB_STATE_COMPLETED)).ok());
  }
  ASSERT_TRUE(RemoveFrom(*store_, "jobs/a").ok());

  const absl::Time now = absl::FromUnixSeconds(1'000'000);
  const auto queued = store_->webhooks().Webhooks(0, 10);
  ASSERT_TRUE(queued.ok() && queued->size() == 1) << queued.status();
  const int64_t number = queued->front().number;
  EXPECT_EQ(queued->front().url, "https://h/x");
  EXPECT_EQ(queued->front().owner, "alice");
  EXPECT_EQ(queued->front().attempts, 0);
  EXPECT_LT(queued->front().due, now);
  EXPECT_THAT(*store_->webhooks().Webhooks(number, 10), IsEmpty());
  const auto first = store_->webhooks().TakeWebhook(number, now + absl::Seconds(10));
  ASSERT_TRUE(first.ok() && first->has_value()) << first.status();
  EXPECT_EQ((*first)->number, number);
  EXPECT_EQ((*first)->job.name(), "jobs/a");
  EXPECT_EQ((*first)->job.state(), JOB_STATE_COMPLETED);
  EXPECT_EQ((*first)->job.request().labels().at("team"), "video");
  EXPECT_EQ((*first)->job.request().webhook_url(), "https://h/x");
  EXPECT_EQ((*first)->job.request().prompt(), "");
  EXPECT_EQ((*first)->attempts, 1);
  // It is taken for now, and due again if nobody removes it.
  const auto taken = store_->webhooks().Webhooks(0, 10);
  ASSERT_TRUE(taken.ok() && taken->size() == 1) << taken.status();
  EXPECT_EQ(taken->front().due, now + absl::Seconds(10));
  EXPECT_EQ(taken->front().attempts, 1);
  EXPECT_EQ((*store_->webhooks().TakeWebhook(number, now))->attempts, 2);
  ASSERT_TRUE(store_->webhooks().RemoveWebhook(number).ok());
  EXPECT_THAT(*store_->webhooks().Webhooks(0, 10), IsEmpty());
  EXPECT_EQ(*store_->webhooks().TakeWebhook(number, now), std::nullopt);
}

TEST_P(JobBelongingsTest, ReportsAreReadInPieces) {
  for (const char* const name : {"jobs/a", "jobs/b", "jobs/c"}) {
    StoredJob job = NewJob(name);
    job.job.mutable_request()->set_webhook_url("https://h/x");
    ASSERT_TRUE(Insert(job).ok());
    JobChange end = NewState(job, JOB_STATE_COMPLETED, 2);
    end.events.back().mutable_completed();
    ASSERT_TRUE(Apply(end).ok());
  }
  const auto first = store_->webhooks().Webhooks(0, 2);
  ASSERT_TRUE(first.ok() && first->size() == 2) << first.status();
  const auto rest = store_->webhooks().Webhooks(first->back().number, 2);
  ASSERT_TRUE(rest.ok() && rest->size() == 1) << rest.status();
  EXPECT_GT(rest->front().number, first->back().number);
}

TEST_P(JobBelongingsTest, WhatARemovedJobHasUsedIsKeptForADay) {
  constexpr int64_t kMinute = 60;
  const auto use = [&](const std::string& name, const std::string& owner, double seconds,
                       int64_t ended) {
    StoredJob job = NewJob(name);
    job.job.set_owner(owner);
    ASSERT_TRUE(Insert(job).ok());
    JobChange end = NewState(job, JOB_STATE_COMPLETED, 2);
    end.events.back().mutable_completed();
    end.row->set_device_seconds(seconds);
    end.row->mutable_end_time()->set_seconds(ended);
    ASSERT_TRUE(Apply(end).ok());
    ASSERT_TRUE(RemoveFrom(*store_, name).ok());
  };
  const auto kept = [&](int64_t since) {
    std::map<std::string, double> seconds;
    const auto uses = store_->UseOfRemoved(absl::FromUnixSeconds(since));
    EXPECT_TRUE(uses.ok()) << uses.status();
    for (const PrincipalUse& use : *uses) seconds[use.owner] += absl::ToDoubleSeconds(use.held);
    return seconds;
  };
  constexpr int64_t kStart = 100'000 * kMinute;
  use("jobs/a", "alice", 2, kStart);
  use("jobs/b", "alice", 3, kStart + 59);
  use("jobs/c", "alice", 5, kStart + kMinute);
  use("jobs/d", "bob", 0.5, kStart + kMinute);
  use("jobs/e", "carol", 0, kStart + kMinute);
  EXPECT_THAT(kept(kStart), ElementsAre(Pair("alice", 10), Pair("bob", 0.5)));
  EXPECT_THAT(kept(kStart + kMinute), ElementsAre(Pair("alice", 5), Pair("bob", 0.5)));
  use("jobs/f", "bob", 1, kStart + 2 * 24 * 60 * kMinute + kMinute);
  EXPECT_THAT(kept(0), ElementsAre(Pair("alice", 5), Pair("bob", 1.5)));
}

TEST_P(JobBelongingsTest, FilesOfTheModelAreReplacedAndGoWithTheJob) {
  const StoredJob job = NewJob("jobs/a");
  ASSERT_TRUE(Insert(job).ok());
  EXPECT_THAT(*store_->Files("jobs/a"), IsEmpty());
  JobChange change{.job = "jobs/a"};
  change.files = {{"vae", 2, "key of vae", "digest of vae"},
                  {"loras/a/b", uint64_t{1} << 40, "key of b"}};
  ASSERT_TRUE(Apply(change).ok());
  EXPECT_THAT(*store_->Files("jobs/a"), ElementsAre(change.files->at(1), change.files->at(0)));
  ASSERT_TRUE(Apply(NewState(job, JOB_STATE_RUNNING)).ok());
  EXPECT_THAT(*store_->Files("jobs/a"), SizeIs(2)) << "another change leaves them alone";
  change.files = {{"other", 1, "key"}};
  ASSERT_TRUE(Apply(change).ok());
  EXPECT_THAT(*store_->Files("jobs/a"), ElementsAre(change.files->at(0)));
  ASSERT_TRUE(Apply(NewState(job, JOB_STATE_FAILED)).ok());
  change.files->front().sha256 = "digest that was computed later";
  ASSERT_TRUE(Apply(change).ok()) << "the files of an ended job may change";
  EXPECT_THAT(*store_->Files("jobs/a"), ElementsAre(change.files->at(0)));
  ASSERT_TRUE(RemoveFrom(*store_, "jobs/a").ok());
  EXPECT_THAT(*store_->Files("jobs/a"), IsEmpty());
  EXPECT_THAT(*store_->Files("jobs/unknown"), IsEmpty());
}

class EndedJobsTest : public JobStoreTest {
 protected:
  // A job that ended so many minutes after 1970, with a file of so many bytes (0: none).
  void End(const std::string& name, int minute, uint64_t bytes,
           wan::v1::JobState state = JOB_STATE_COMPLETED, const std::string& owner = "o") {
    StoredJob stored = NewJob(name);
    stored.job.set_owner(owner);
    ASSERT_TRUE(Insert(stored).ok());
    JobChange change = NewState(stored, state, 2);
    change.row->mutable_end_time()->set_seconds(minute * 60);
    if (bytes > 0) change.row->add_artifacts()->set_size_bytes(bytes);
    ASSERT_TRUE(Apply(change).ok());
    ended_[name] = change;
  }

  std::vector<std::string> Oldest(const EndedQuery& query) {
    const auto jobs = store_->OldestEnded(query);
    EXPECT_TRUE(jobs.ok()) << jobs.status();
    std::vector<std::string> names;
    for (const EndedJob& job : *jobs) names.push_back(job.name);
    return names;
  }

  std::map<std::string, JobChange> ended_;
};

TEST_P(EndedJobsTest, TotalsFollowEveryChange) {
  EXPECT_THAT(*store_->TotalsOfEnded(std::nullopt), IsEmpty());
  End("jobs/a", 1, 100);
  End("jobs/b", 2, 50, JOB_STATE_COMPLETED, "p");
  End("jobs/c", 3, 0, wan::v1::JOB_STATE_FAILED);
  ASSERT_TRUE(Insert(NewJob("jobs/waits")).ok());
  auto totals = *store_->TotalsOfEnded(std::nullopt);
  EXPECT_EQ(totals[JOB_STATE_COMPLETED].jobs, 2);
  EXPECT_EQ(totals[JOB_STATE_COMPLETED].jobs_with_files, 2);
  EXPECT_EQ(totals[JOB_STATE_COMPLETED].file_bytes, 150);
  EXPECT_GT(totals[JOB_STATE_COMPLETED].entry_bytes, 0);
  EXPECT_EQ(totals[wan::v1::JOB_STATE_FAILED].jobs, 1);
  EXPECT_EQ(totals[wan::v1::JOB_STATE_FAILED].jobs_with_files, 0);
  EXPECT_EQ((*store_->TotalsOfEnded("p"))[JOB_STATE_COMPLETED].file_bytes, 50);
  EXPECT_THAT(*store_->TotalsOfEnded("nobody"), IsEmpty());

  JobChange gone = ended_["jobs/a"];
  gone.events.clear();
  gone.row->mutable_artifacts(0)->mutable_delete_time()->set_seconds(1);
  ASSERT_TRUE(Apply(gone).ok());
  totals = *store_->TotalsOfEnded(std::nullopt);
  EXPECT_EQ(totals[JOB_STATE_COMPLETED].jobs, 2);
  EXPECT_EQ(totals[JOB_STATE_COMPLETED].jobs_with_files, 1);
  EXPECT_EQ(totals[JOB_STATE_COMPLETED].file_bytes, 50);
  for (const auto& [name, change] : ended_) ASSERT_TRUE(RemoveFrom(*store_, name).ok());
  totals = *store_->TotalsOfEnded(std::nullopt);
  for (const auto& [state, left] : totals) {
    EXPECT_EQ(left.jobs + left.jobs_with_files + left.file_bytes + left.entry_bytes, 0) << state;
  }
}

TEST_P(EndedJobsTest, TheOldestByTheirEndAndByTheirTime) {
  End("jobs/a", 50, 1);
  End("jobs/b", 20, 0);
  End("jobs/c", 10, 1);  // the wall clock was set back
  End("jobs/d", 5, 1, wan::v1::JOB_STATE_FAILED);
  EXPECT_THAT(Oldest({}), ElementsAre("jobs/a", "jobs/b", "jobs/c"));
  EXPECT_THAT(Oldest({.skip = 1, .limit = 1}), ElementsAre("jobs/b"));
  EXPECT_THAT(Oldest({.with_files = true}), ElementsAre("jobs/a", "jobs/c"));
  const absl::Time half_past = absl::FromUnixSeconds(30 * 60);
  EXPECT_THAT(Oldest({.ended_before = half_past}), ElementsAre("jobs/c", "jobs/b"));
  EXPECT_THAT(Oldest({.with_files = true, .ended_before = half_past}), ElementsAre("jobs/c"));
  EXPECT_THAT(Oldest({.state = wan::v1::JOB_STATE_FAILED}), ElementsAre("jobs/d"));
}

INSTANTIATE_TEST_SUITE_P(All, JobBelongingsTest, JobStores(), NameOfJobStore);
INSTANTIATE_TEST_SUITE_P(All, EndedJobsTest, JobStores(), NameOfJobStore);

}  // namespace
}  // namespace wan::server
