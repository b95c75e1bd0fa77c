#include "server/quota/usage_account.h"

#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "engine/api/errors.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/conversion/convert.h"
#include "server/conversion/errors.h"

namespace wan::server {
namespace {

using testing::HasSubstr;

const absl::Time kStart = absl::FromUnixSeconds(60 * 1'000'000);

class UsageAccountTest : public testing::Test {
 protected:
  wan::v1::Job Add(const std::string& owner, std::optional<absl::Duration> estimate = {}) {
    wan::v1::Job job;
    job.set_name(absl::StrCat("jobs/", ++jobs_));
    job.set_owner(owner);
    account_.Add(job, estimate);
    return job;
  }
  void Begin(wan::v1::Job& job, absl::Time at = kStart) {
    *job.mutable_start_time() = ToProto(at);
    account_.Begin(job, absl::Seconds(60), at);
  }
  // An attempt that has held the device until `at`, and the job's end.
  void Use(const std::string& owner, absl::Duration held, absl::Time at) {
    wan::v1::Job job = Add(owner);
    Begin(job, at - held);
    account_.End(job, held, at);
    account_.Remove(job.name());
  }
  absl::Status Admit(const std::string& owner, int jobs = 1, absl::Duration estimate = {},
                     absl::Time now = kStart) {
    return account_.Admit(quota_, owner, {jobs, estimate}, now, [this](int n) {
      asked_for_ = n;
      return absl::Seconds(40) + absl::Milliseconds(1);
    });
  }

  UsageAccount account_;
  wan::v1::Quota quota_;
  int jobs_ = 0;
  int asked_for_ = 0;
};

TEST_F(UsageAccountTest, WithoutAQuotaEverythingIsAdmitted) {
  for (int i = 0; i < 100; ++i) Add("alice", absl::Hours(100));
  EXPECT_TRUE(Admit("alice", 100, absl::Hours(1000)).ok());
}

TEST_F(UsageAccountTest, QueuedJobsAtTheirLimitAndBeyond) {
  quota_.set_queued_jobs(3);
  EXPECT_TRUE(Admit("alice", 3).ok());
  wan::v1::Job first = Add("alice");
  Add("alice");
  EXPECT_TRUE(Admit("alice", 1).ok());
  EXPECT_TRUE(Admit("bob", 3).ok());
  const absl::Status refused = Admit("alice", 3);
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(ReasonOf(refused), kReasonQuotaExceeded);
  EXPECT_EQ(asked_for_, 2);  // two must have begun
  EXPECT_EQ(RetryDelayOf(refused), absl::Seconds(41));
  EXPECT_EQ(std::string(refused.message()),
            "the principal 'alice' has 2 jobs in the queue and asks for 3 more; the quota "
            "queued_jobs is 3; try again in 41s");
  EXPECT_EQ(QuotaFailureOf(refused)->subject, "principal:alice");
  EXPECT_EQ(MetadataOf(refused).at("quota"), "queued_jobs");
  EXPECT_EQ(MetadataOf(refused).at("used"), "2");
  EXPECT_EQ(MetadataOf(refused).at("limit"), "3");
  // A job that runs is not in the queue.
  Begin(first);
  EXPECT_TRUE(Admit("alice", 2).ok());
  account_.End(first, absl::ZeroDuration(), kStart);  // it goes back to the queue
  EXPECT_FALSE(Admit("alice", 2).ok());
  account_.Remove(first.name());
  EXPECT_TRUE(Admit("alice", 2).ok());
}

TEST_F(UsageAccountTest, WhatNoWaitingMakesPossibleHasNoRetryDelay) {
  quota_.set_queued_jobs(3);
  const absl::Status batch = Admit("alice", 4);
  EXPECT_EQ(RetryDelayOf(batch), std::nullopt);
  EXPECT_THAT(std::string(batch.message()), HasSubstr("ask for at most 3 jobs at a time"));
  quota_.set_queued_jobs(0);
  EXPECT_EQ(RetryDelayOf(Admit("alice")), std::nullopt);
  quota_.clear_queued_jobs();
  quota_.set_device_seconds(10);
  EXPECT_EQ(RetryDelayOf(Admit("alice", 1, absl::Seconds(11))), std::nullopt);
  EXPECT_THAT(std::string(Admit("alice", 1, absl::Seconds(11)).message()),
              HasSubstr("ask for less"));
  quota_.set_device_seconds(0);
  EXPECT_EQ(RetryDelayOf(Admit("alice")), std::nullopt);
  EXPECT_FALSE(Admit("alice").ok());
}

TEST_F(UsageAccountTest, DeviceSecondsAtTheirLimitAndBeyond) {
  quota_.set_device_seconds(100);
  Use("alice", absl::Seconds(30), kStart - absl::Hours(2));
  Use("alice", absl::Seconds(20), kStart - absl::Hours(1));
  Add("alice", absl::Seconds(25));
  EXPECT_TRUE(Admit("alice", 1, absl::Seconds(25)).ok());
  const absl::Status refused = Admit("alice", 1, absl::Seconds(26));
  EXPECT_EQ(ReasonOf(refused), kReasonQuotaExceeded);
  EXPECT_EQ(std::string(refused.message()),
            "the principal 'alice' has used 50 device seconds in the last 24 hours, its unfinished "
            "jobs are estimated to take 25 more, and this call 26; the quota device_seconds is "
            "100; try again in 22h1m");
  // It is true.
  const absl::Time then = kStart + *RetryDelayOf(refused);
  EXPECT_TRUE(Admit("alice", 1, absl::Seconds(26), then).ok());
  EXPECT_FALSE(Admit("alice", 1, absl::Seconds(26), then - absl::Seconds(1)).ok());
}

TEST_F(UsageAccountTest, WhatUnfinishedJobsTakeLeavesTheWindowADayLater) {
  quota_.set_device_seconds(100);
  Add("alice", absl::Seconds(80));
  EXPECT_EQ(RetryDelayOf(Admit("alice", 1, absl::Seconds(21))), absl::Hours(24));
}

TEST_F(UsageAccountTest, AJobOfUnknownLengthNeedsSomeRoom) {
  quota_.set_device_seconds(100);
  Add("alice", absl::Seconds(99));
  EXPECT_TRUE(Admit("alice").ok());
  const wan::v1::Job job = Add("alice", absl::Seconds(1));
  EXPECT_FALSE(Admit("alice").ok());
  account_.Estimate(job.name(), absl::Milliseconds(500));
  EXPECT_TRUE(Admit("alice").ok());
}

TEST_F(UsageAccountTest, EstimatedBeforeAndSettledAfter) {
  wan::v1::Job job = Add("alice", absl::Seconds(50));
  EXPECT_EQ(account_.UsageOf("alice", kStart).reserved_device_seconds(), 50);
  Begin(job);
  EXPECT_EQ(account_.UsageOf("alice", kStart).running_jobs(), 1);
  EXPECT_EQ(account_.UsageOf("alice", kStart).queued_jobs(), 0);
  EXPECT_EQ(account_.RecentUseOf("alice", kStart), absl::Seconds(60));
  const absl::Time end = kStart + absl::Seconds(8);
  account_.End(job, absl::Seconds(8), end);
  EXPECT_EQ(job.device_seconds(), 8);
  EXPECT_EQ(account_.UsageOf("alice", end).queued_jobs(), 1);
  account_.Remove(job.name());
  const wan::v1::Usage usage = account_.UsageOf("alice", end);
  EXPECT_EQ(usage.principal(), "alice");
  EXPECT_EQ(usage.queued_jobs(), 0);
  EXPECT_EQ(usage.device_seconds(), 8);
  EXPECT_EQ(usage.reserved_device_seconds(), 0);
  EXPECT_NEAR(absl::ToDoubleSeconds(account_.RecentUseOf("alice", end)), 8, 1e-6);
  EXPECT_EQ(account_.UsageOf("bob", end).device_seconds(), 0);
}

TEST_F(UsageAccountTest, RunningJobsAtTheirLimitAndBeyond) {
  wan::v1::Job job = Add("alice");
  EXPECT_TRUE(account_.MayRun(quota_, "alice"));
  quota_.set_running_jobs(1);
  EXPECT_TRUE(account_.MayRun(quota_, "alice"));
  Begin(job);
  EXPECT_FALSE(account_.MayRun(quota_, "alice"));
  EXPECT_TRUE(account_.MayRun(quota_, "bob"));
  quota_.set_running_jobs(2);
  EXPECT_TRUE(account_.MayRun(quota_, "alice"));
  quota_.set_running_jobs(0);
  EXPECT_FALSE(account_.MayRun(quota_, "bob"));
}

TEST_F(UsageAccountTest, IsMadeAnewFromStoredJobs) {
  account_.RecallEnded("alice", absl::Seconds(30), kStart - absl::Hours(23));
  wan::v1::Job running;
  running.set_name("jobs/running");
  running.set_owner("alice");
  running.set_state(wan::v1::JOB_STATE_RUNNING);
  running.set_device_seconds(5);  // of earlier attempts
  *running.mutable_start_time() = ToProto(kStart - absl::Hours(2));
  account_.Add(running, std::nullopt);
  account_.RecallUnended(running, kStart - absl::Hours(2) + absl::Seconds(7), absl::ZeroDuration());
  EXPECT_EQ(running.device_seconds(), 12);
  EXPECT_EQ(account_.UsageOf("alice", kStart).device_seconds(), 42);
  EXPECT_EQ(account_.UsageOf("alice", kStart).queued_jobs(), 1);
  EXPECT_EQ(account_.UsageOf("alice", kStart + absl::Hours(2)).device_seconds(), 12);
  // An attempt that never told anything has no known length.
  running.set_device_seconds(0);
  account_.RecallUnended(running, absl::InfinitePast(), absl::ZeroDuration());
  EXPECT_EQ(running.device_seconds(), 0);
}

TEST_F(UsageAccountTest, WithoutAnEstimateAJobKeepsWhatItHasReserved) {
  const wan::v1::Job job = Add("alice", absl::Seconds(12));
  account_.Estimate(job.name(), std::nullopt);
  EXPECT_EQ(account_.UsageOf("alice", kStart).reserved_device_seconds(), 12);
  account_.Estimate(job.name(), absl::Seconds(5));
  EXPECT_EQ(account_.UsageOf("alice", kStart).reserved_device_seconds(), 5);
}

TEST_F(UsageAccountTest, WithoutAuthenticationEverybodyIsOnePrincipal) {
  quota_.set_queued_jobs(1);
  Add("");
  const absl::Status refused = Admit("");
  EXPECT_THAT(std::string(refused.message()), HasSubstr("everybody together has 1 job in the"));
  EXPECT_EQ(QuotaFailureOf(refused)->subject, "everybody");
}

}  // namespace
}  // namespace wan::server
