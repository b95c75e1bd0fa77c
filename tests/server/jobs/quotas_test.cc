// What quotas do to the jobs of a service.
#include "server/quota/quotas.h"

#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/api/errors.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/conversion/errors.h"
#include "tests/server/jobs/test_support.h"

namespace wan::server {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class JobQuotasTest : public ServiceTest {
 protected:
  // Another file in its place, so that no clock's resolution hides the change.
  void WriteQuotas(const std::string& text) {
    const std::filesystem::path path = folder_.path() / "quotas";
    std::ofstream(path.string() + ".new") << text;
    std::filesystem::rename(path.string() + ".new", path);
    if (quotas_ != nullptr) return quotas_->Refresh();
    auto opened = Quotas::Open(path, {[this] { service_->QuotasChanged(); }});
    ASSERT_TRUE(opened.ok()) << opened.status();
    quotas_ = *std::move(opened);
    options_.quotas = quotas_.get();
  }
  ~JobQuotasTest() override { Close(); }

  absl::StatusOr<std::string> CreateFor(const std::string& owner,
                                        const std::string& prompt = "a cat") {
    const auto created = calls().Create(Request(prompt), /*tied_to_caller=*/false, owner);
    if (!created.ok()) return created.status();
    return created->job.name();
  }
  absl::Status Refused(const std::string& owner) { return CreateFor(owner).status(); }

  std::unique_ptr<Quotas> quotas_;
};

TEST_F(JobQuotasTest, QueuedJobsAtTheirLimitAndBeyond) {
  WriteQuotas("*: queued_jobs=2\nbob: unlimited");
  Open();
  engine_->Hold("T5_Encoding");
  ASSERT_TRUE(CreateFor("alice").ok());
  engine_->AwaitHeld("T5_Encoding");
  ASSERT_TRUE(CreateFor("alice").ok());
  const auto second = CreateFor("alice");
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_EQ(ReasonOf(Refused("alice")), kReasonQuotaExceeded);
  EXPECT_TRUE(CreateFor("bob").ok());
  EXPECT_TRUE(CreateFor("carol").ok());
  ASSERT_TRUE(calls().Cancel(*second, "").ok());
  EXPECT_TRUE(CreateFor("alice").ok());
  EXPECT_EQ(ReasonOf(Refused("alice")), kReasonQuotaExceeded);
  const auto usage = service_->UsageOf("alice");
  ASSERT_TRUE(usage.ok());
  EXPECT_EQ(usage->queued_jobs(), 2);
  EXPECT_EQ(usage->running_jobs(), 1);
  EXPECT_EQ(usage->quota().queued_jobs(), 2);
  engine_->Release("T5_Encoding");
}

TEST_F(JobQuotasTest, ABatchCountsAllItsJobs) {
  WriteQuotas("*: queued_jobs=2");
  Open();
  engine_->Hold("T5_Encoding");
  ASSERT_TRUE(CreateFor("bob").ok());
  engine_->AwaitHeld("T5_Encoding");
  wan::v1::SubmitBatchRequest batch;
  for (int i = 0; i < 3; ++i) *batch.add_requests() = Request();
  const auto refused = calls().SubmitBatch(batch, "alice");
  EXPECT_EQ(ReasonOf(refused.status()), kReasonQuotaExceeded);
  EXPECT_EQ(service_->UsageOf("alice")->queued_jobs(), 0);
  batch.mutable_requests()->RemoveLast();
  EXPECT_TRUE(calls().SubmitBatch(batch, "alice").ok());
  batch.mutable_requests()->RemoveLast();
  EXPECT_EQ(ReasonOf(calls().SubmitBatch(batch, "alice").status()), kReasonQuotaExceeded);
  engine_->Release("T5_Encoding");
}

TEST_F(JobQuotasTest, TheSameRequestAgainFindsItsJobWhateverTheQuota) {
  WriteQuotas("*: queued_jobs=1");
  Open();
  engine_->Hold("T5_Encoding");
  ASSERT_TRUE(CreateFor("bob").ok());
  engine_->AwaitHeld("T5_Encoding");
  wan::v1::GenerationRequest request = Request();
  request.set_request_id("once");
  ASSERT_TRUE(calls().Create(request, false, "alice").ok());
  const auto again = calls().Create(request, false, "alice");
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_FALSE(again->created);
  engine_->Release("T5_Encoding");
}

TEST_F(JobQuotasTest, JobsOfAPrincipalThatMayNotRunKeepTheirPlaceAndOthersGoAhead) {
  WriteQuotas("alice: running_jobs=0");
  Open();
  const auto held = CreateFor("alice", "of alice");
  ASSERT_TRUE(held.ok()) << held.status();
  RunToEnd(*CreateFor("bob", "of bob"));
  EXPECT_EQ(Get(*held).state(), wan::v1::JOB_STATE_QUEUED);
  EXPECT_EQ(Get(*held).queue_position(), 0);
  WriteQuotas("alice: running_jobs=1");  // nobody else wakes the executor
  RunToEnd(*held);
  std::vector<std::string> prompts;
  for (const GenerationRequest& request : engine_->Generated()) prompts.push_back(request.prompt);
  EXPECT_THAT(prompts, ElementsAre("of bob", "of alice"));
}

TEST_F(JobQuotasTest, DeviceSecondsAreEstimatedBeforeAndSettledAfter) {
  WriteQuotas("alice: device_seconds=25");
  Open();
  engine_->TakeTime("Step_Inference", absl::Seconds(4));
  RunToEnd(*CreateFor("bob"));  // teaches what a job takes: 3 steps of 4 s
  engine_->Hold("T5_Encoding");
  ASSERT_TRUE(CreateFor("bob").ok());
  engine_->AwaitHeld("T5_Encoding");
  const auto first = CreateFor("alice");
  const auto second = CreateFor("alice");
  ASSERT_TRUE(second.ok()) << second.status();
  const auto usage = service_->UsageOf("alice");
  EXPECT_EQ(usage->reserved_device_seconds(), 24);
  EXPECT_EQ(usage->device_seconds(), 0);
  const absl::Status refused = Refused("alice");
  EXPECT_EQ(ReasonOf(refused), kReasonQuotaExceeded);
  EXPECT_THAT(std::string(refused.message()), HasSubstr("estimated to take 24 more"));
  EXPECT_EQ(RetryDelayOf(refused), absl::Hours(24));
  // They take less than was thought.
  engine_->TakeTime("Step_Inference", absl::Seconds(1));
  engine_->Release("T5_Encoding");
  RunToEnd(*second);
  EXPECT_EQ(service_->UsageOf("alice")->device_seconds(), 6);
  EXPECT_EQ(service_->UsageOf("alice")->reserved_device_seconds(), 0);
  EXPECT_TRUE(CreateFor("alice").ok());
}

TEST_F(JobQuotasTest, StoredBytesAtTheirLimitAndBeyond) {
  WriteQuotas("alice: stored_bytes=2000");
  Open();
  engine_->PadOutputs(1'000);
  RunToEnd(*CreateFor("alice"));
  EXPECT_EQ(service_->UsageOf("alice")->stored_bytes(), 1'000);
  EXPECT_EQ(service_->UsageOf("bob")->stored_bytes(), 0);
  engine_->PadOutputs(999);
  const auto second = CreateFor("alice");
  ASSERT_TRUE(second.ok()) << second.status();
  RunToEnd(*second);
  engine_->PadOutputs(1);
  const auto third = CreateFor("alice");  // one byte is left
  ASSERT_TRUE(third.ok()) << third.status();
  RunToEnd(*third);
  const absl::Status refused = Refused("alice");
  EXPECT_EQ(ReasonOf(refused), kReasonQuotaExceeded);
  EXPECT_EQ(RetryDelayOf(refused), std::nullopt);
  EXPECT_THAT(std::string(refused.message()), HasSubstr("delete jobs or artifacts"));
  EXPECT_TRUE(CreateFor("bob").ok());
  ASSERT_TRUE(calls().DeleteArtifact(Get(*second).artifacts(0).name()).ok());
  EXPECT_TRUE(CreateFor("alice").ok());
  Close();
  Open();
  EXPECT_GE(service_->UsageOf("alice")->stored_bytes(), 1'001);
}

TEST_F(JobQuotasTest, WhatWasUsedInTheLastDaySurvivesARestart) {
  WriteQuotas("alice: device_seconds=12");
  Open();
  engine_->TakeTime("Step_Inference", absl::Seconds(4));
  RunToEnd(*CreateFor("alice"));
  EXPECT_EQ(ReasonOf(Refused("alice")), kReasonQuotaExceeded);
  Close();
  clock_.Advance(absl::Hours(23));
  Open();
  EXPECT_EQ(service_->UsageOf("alice")->device_seconds(), 12);
  const absl::Status refused = Refused("alice");
  EXPECT_EQ(ReasonOf(refused), kReasonQuotaExceeded);
  clock_.Advance(RetryDelayOf(refused).value());
  EXPECT_EQ(service_->UsageOf("alice")->device_seconds(), 0);
  EXPECT_TRUE(CreateFor("alice").ok());
}

TEST_F(JobQuotasTest, WhatARemovedJobHasUsedSurvivesARestart) {
  WriteQuotas("alice: device_seconds=12");
  Open();
  engine_->TakeTime("Step_Inference", absl::Seconds(4));
  const auto job = CreateFor("alice");
  RunToEnd(*job);
  ASSERT_TRUE(calls().Delete(*job).ok());
  EXPECT_EQ(service_->UsageOf("alice")->device_seconds(), 12);
  Close();
  clock_.Advance(absl::Hours(23));
  Open();
  EXPECT_EQ(service_->UsageOf("alice")->device_seconds(), 12);
  EXPECT_EQ(ReasonOf(Refused("alice")), kReasonQuotaExceeded);
  clock_.Advance(absl::Hours(1) + absl::Minutes(1));
  EXPECT_EQ(service_->UsageOf("alice")->device_seconds(), 0);
}

TEST_F(JobQuotasTest, WhatWaitingJobsHaveReservedSurvivesARestart) {
  WriteQuotas("alice: device_seconds=25");
  Open();
  engine_->TakeTime("Step_Inference", absl::Seconds(4));
  RunToEnd(*CreateFor("bob"));  // teaches what a job takes: 3 steps of 4 s
  engine_->Hold("T5_Encoding");
  ASSERT_TRUE(CreateFor("bob").ok());
  engine_->AwaitHeld("T5_Encoding");
  const auto first = CreateFor("alice");
  const auto second = CreateFor("alice");
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_EQ(Get(*first).reserved_device_seconds(), 12);
  const TempFolder copy;
  CopyFolder(options_.data_dir, copy.path() / "data");
  engine_->Release("T5_Encoding");
  RunToEnd(*second);
  EXPECT_FALSE(Get(*second).has_reserved_device_seconds());
  Close();

  OpenIn(copy.path() / "data", /*load=*/false);  // so that nothing runs, and nothing is learned
  EXPECT_EQ(service_->UsageOf("alice")->reserved_device_seconds(), 24);
  EXPECT_EQ(service_->UsageOf("alice")->device_seconds(), 0);
  EXPECT_EQ(Get(*first).reserved_device_seconds(), 12);
  ASSERT_TRUE(calls().Cancel(*first, "").ok());
  EXPECT_EQ(service_->UsageOf("alice")->reserved_device_seconds(), 12);
}

}  // namespace
}  // namespace wan::server
