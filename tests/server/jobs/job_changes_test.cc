// What callers change about jobs that exist, and many of them created at once.
#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/api/errors.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/conversion/convert.h"
#include "server/conversion/errors.h"
#include "server/jobs/job_service.h"
#include "tests/server/jobs/test_support.h"

namespace wan::server {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using wan::v1::JOB_STATE_COMPLETED;
using wan::v1::JOB_STATE_QUEUED;

constexpr char kHeld[] = "T5_Encoding";

class JobChangesTest : public ServiceTest {
 protected:
  // A job that runs until the engine is let go.
  std::string HoldOne() {
    engine_->Hold(kHeld);
    const std::string job = Create();
    engine_->AwaitHeld(kHeld);
    return job;
  }

  static wan::v1::UpdateJobRequest Priority(const std::string& job, int priority) {
    wan::v1::UpdateJobRequest request;
    request.mutable_job()->set_name(job);
    request.mutable_job()->mutable_request()->set_priority(priority);
    request.mutable_update_mask()->add_paths("request.priority");
    return request;
  }

  std::vector<std::string> Listed(const std::string& filter) {
    wan::v1::ListJobsRequest request;
    request.set_filter(filter);
    const auto page = calls().List(request);
    EXPECT_TRUE(page.ok()) << page.status();
    std::vector<std::string> names;
    for (const wan::v1::Job& job : page->jobs()) names.push_back(job.name());
    return names;
  }
};

TEST_F(JobChangesTest, AQueuedJobTakesItsNewPlaceAtOnce) {
  Open();
  HoldOne();
  const std::string first = Create();
  const std::string second = Create();
  EXPECT_EQ(Get(second).queue_position(), 1);
  const auto updated = calls().Update(Priority(second, 7));
  ASSERT_TRUE(updated.ok()) << updated.status();
  EXPECT_EQ(updated->queue_position(), 0);
  EXPECT_EQ(updated->request().priority(), 7);
  EXPECT_EQ(Get(first).queue_position(), 1);
  EXPECT_THAT(Listed("priority = 7"), ElementsAre(second));
  engine_->Release(kHeld);
  const auto events = RunToEnd(first);
  EXPECT_EQ(Get(second).state(), JOB_STATE_COMPLETED) << "it ran before the first";
}

TEST_F(JobChangesTest, ADeadlineIsSetMovedAndRemoved) {
  Open();
  HoldOne();
  const std::string job = Create();
  wan::v1::UpdateJobRequest request;
  request.mutable_job()->set_name(job);
  *request.mutable_job()->mutable_request()->mutable_deadline() =
      ToProto(clock_.Now() + absl::Seconds(10));
  request.mutable_update_mask()->add_paths("request.deadline");
  ASSERT_TRUE(calls().Update(request).ok());
  request.mutable_job()->mutable_request()->clear_deadline();
  ASSERT_TRUE(calls().Update(request).ok());
  clock_.Advance(absl::Seconds(20));
  EXPECT_EQ(Get(job).state(), JOB_STATE_QUEUED);
  EXPECT_FALSE(Get(job).request().has_deadline());
  *request.mutable_job()->mutable_request()->mutable_deadline() =
      ToProto(clock_.Now() + absl::Seconds(10));
  ASSERT_TRUE(calls().Update(request).ok());
  clock_.Advance(absl::Seconds(20));
  const auto events = BlockingReader(*service_, job).Rest();
  ASSERT_TRUE(events.back().has_cancelled());
  EXPECT_EQ(events.back().cancelled().reason(), "deadline exceeded");
  engine_->Release(kHeld);
}

TEST_F(JobChangesTest, AnUpdateSurvivesARestart) {
  Open();
  HoldOne();
  const std::string job = Create();
  ASSERT_TRUE(calls().Update(Priority(job, -5)).ok());
  const std::filesystem::path copy = folder_.path() / "copy";
  CopyFolder(options_.data_dir, copy);
  engine_->Release(kHeld);
  Close();
  OpenIn(copy, /*load=*/false);
  EXPECT_EQ(Get(job).request().priority(), -5);
}

TEST_F(JobChangesTest, OfAnEndedJobOnlyTheLabelsChange) {
  Open();
  const std::string job = Create();
  RunToEnd(job);
  EXPECT_EQ(ReasonOf(calls().Update(Priority(job, 1)).status()), kReasonJobEnded);
  wan::v1::UpdateJobRequest request;
  request.mutable_job()->set_name(job);
  (*request.mutable_job()->mutable_request()->mutable_labels())["kept"] = "yes";
  request.mutable_update_mask()->add_paths("request.labels");
  const auto updated = calls().Update(request);
  ASSERT_TRUE(updated.ok()) << updated.status();
  EXPECT_EQ(updated->request().labels().at("kept"), "yes");
  EXPECT_EQ(updated->state(), JOB_STATE_COMPLETED);
  EXPECT_THAT(Listed("labels.kept = yes"), ElementsAre(job));
}

TEST_F(JobChangesTest, EveryViolationOfAnUpdateAtOnce) {
  Open();
  wan::v1::UpdateJobRequest request;
  request.mutable_job()->set_name("nobody");
  request.mutable_job()->mutable_request()->set_priority(1000);
  request.mutable_job()->mutable_request()->mutable_deadline()->set_seconds(1);
  request.mutable_update_mask()->add_paths("*");
  request.mutable_update_mask()->add_paths("request.prompt");
  EXPECT_THAT(
      FieldsOf(calls().Update(request).status()),
      ElementsAre("job.name", "update_mask", "job.request.priority", "job.request.deadline"));
  request.mutable_update_mask()->clear_paths();
  EXPECT_THAT(FieldsOf(calls().Update(request).status()), ElementsAre("job.name", "update_mask"));
  EXPECT_EQ(ReasonOf(calls().Update(Priority("jobs/nobody", 1)).status()), kReasonJobNotFound);
}

TEST_F(JobChangesTest, AnEndedJobIsDeletedWithAllThatIsItsOwn) {
  Open();
  const std::string running = HoldOne();
  EXPECT_EQ(ReasonOf(calls().Delete(running)), kReasonJobNotEnded);
  engine_->Release(kHeld);
  RunToEnd(running);
  const auto file = options_.data_dir / "artifacts" / running.substr(5);
  EXPECT_TRUE(std::filesystem::exists(file));
  const std::string artifact = Get(running).artifacts(0).name();
  ASSERT_TRUE(calls().Delete(running).ok());
  EXPECT_FALSE(std::filesystem::exists(file));
  EXPECT_EQ(ReasonOf(service_->Get(running).status()), kReasonExpired);
  EXPECT_EQ(ReasonOf(service_->Report(running).status()), kReasonExpired);
  EXPECT_EQ(ReasonOf(service_->OpenArtifact(artifact, 0).status()), kReasonExpired);
  EXPECT_EQ(ReasonOf(calls().Delete(running)), kReasonExpired);
  EXPECT_EQ(ReasonOf(calls().Delete("jobs/nobody")), kReasonJobNotFound);
  EXPECT_THAT(Listed(""), IsEmpty());
}

TEST_F(JobChangesTest, ADeletedArtifactStaysInItsJob) {
  Open();
  wan::v1::GenerationRequest request = Request();
  request.add_outputs(wan::v1::OUTPUT_KIND_MP4);
  request.add_outputs(wan::v1::OUTPUT_KIND_LATENTS);
  const std::string job = Create(request);
  RunToEnd(job);
  const std::string artifact = job + "/artifacts/video.mp4";
  ASSERT_TRUE(calls().DeleteArtifact(artifact).ok());
  EXPECT_FALSE(
      std::filesystem::exists(options_.data_dir / "artifacts" / job.substr(5) / "video.mp4"));
  const wan::v1::Job after = Get(job);
  ASSERT_THAT(after.artifacts(), SizeIs(2));
  EXPECT_TRUE(after.artifacts(0).has_delete_time());
  EXPECT_FALSE(after.artifacts(1).has_delete_time());
  EXPECT_EQ(ReasonOf(service_->OpenArtifact(artifact, 0).status()), kReasonExpired);
  EXPECT_EQ(ReasonOf(calls().DeleteArtifact(artifact)), kReasonExpired);
  EXPECT_TRUE(service_->OpenArtifact(after.artifacts(1).name(), 0).ok());
  EXPECT_EQ(ReasonOf(calls().DeleteArtifact(job + "/artifacts/other.mp4")),
            kReasonArtifactNotFound);
}

TEST_F(JobChangesTest, ABatchIsAcceptedWhole) {
  Open();
  wan::v1::SubmitBatchRequest batch;
  for (int i = 0; i < 3; ++i) {
    *batch.add_requests() = Request(absl::StrCat("prompt ", i));
    batch.mutable_requests(i)->set_request_id(absl::StrCat("id ", i));
  }
  const auto first = calls().SubmitBatch(batch);
  ASSERT_TRUE(first.ok()) << first.status();
  ASSERT_THAT(first->jobs(), SizeIs(3));
  for (int i = 0; i < 3; ++i) {
    EXPECT_FALSE(first->jobs(i).has_request());
    EXPECT_EQ(Get(first->jobs(i).name()).request().prompt(), absl::StrCat("prompt ", i));
    RunToEnd(first->jobs(i).name());
  }
  // A retry finds them, and a request that is new makes a job beside them.
  *batch.add_requests() = Request("prompt 3");
  const auto again = calls().SubmitBatch(batch);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->jobs(2).name(), first->jobs(2).name());
  EXPECT_THAT(Listed(""), SizeIs(4));
}

TEST_F(JobChangesTest, ABatchWithOneBadRequestMakesNoJob) {
  Open();
  wan::v1::SubmitBatchRequest batch;
  for (int i = 0; i < 4; ++i) *batch.add_requests() = Request();
  batch.mutable_requests(1)->set_width(63);
  batch.mutable_requests(1)->set_priority(101);
  batch.mutable_requests(3)->set_model("nobody");
  EXPECT_THAT(FieldsOf(calls().SubmitBatch(batch).status()),
              ElementsAre("requests[1].priority", "requests[1].width", "requests[3].model"));
  batch.mutable_requests(0)->set_request_id("same");
  batch.mutable_requests(2)->set_request_id("same");
  EXPECT_THAT(FieldsOf(calls().SubmitBatch(batch).status()), ElementsAre("requests[2].request_id"));
  EXPECT_THAT(FieldsOf(calls().SubmitBatch({}).status()), ElementsAre("requests"));
  for (int i = 4; i < 101; ++i) *batch.add_requests() = Request();
  EXPECT_THAT(FieldsOf(calls().SubmitBatch(batch).status()), ElementsAre("requests"));
  EXPECT_THAT(Listed(""), IsEmpty());
  // The model is not held by any of them.
  bool unloaded = false;
  absl::Mutex mutex;
  service_->model_operations().Unload("m", [&](const absl::StatusOr<wan::v1::Model>& model) {
    absl::MutexLock lock(&mutex);
    EXPECT_TRUE(model.ok()) << model.status();
    unloaded = true;
  });
  absl::MutexLock lock(&mutex);
  mutex.Await(absl::Condition(&unloaded));
}

TEST_F(JobChangesTest, ABatchNeedsRoomForAllOfIt) {
  options_.queue_capacity = 3;
  Open();
  HoldOne();
  Create();
  wan::v1::SubmitBatchRequest batch;
  for (int i = 0; i < 3; ++i) *batch.add_requests() = Request();
  EXPECT_EQ(ReasonOf(calls().SubmitBatch(batch).status()), kReasonQueueFull);
  EXPECT_THAT(Listed("state = QUEUED"), SizeIs(1));
  batch.mutable_requests()->RemoveLast();
  EXPECT_TRUE(calls().SubmitBatch(batch).ok());
  engine_->Release(kHeld);
}

TEST_F(JobChangesTest, AListIsFilteredOrderedAndCutIntoPages) {
  Open();
  HoldOne();
  std::vector<std::string> names;
  for (int i = 0; i < 5; ++i) {
    wan::v1::GenerationRequest request = Request();
    request.set_priority(i % 3);
    (*request.mutable_labels())["n"] = absl::StrCat(i);
    names.push_back(Create(request));
  }
  wan::v1::ListJobsRequest request;
  request.set_filter("labels:n");
  request.set_order_by("priority desc");
  request.set_page_size(2);
  std::vector<std::string> seen;
  do {
    const auto page = calls().List(request);
    ASSERT_TRUE(page.ok()) << page.status();
    for (const wan::v1::Job& job : page->jobs()) seen.push_back(job.name());
    request.set_page_token(page->next_page_token());
  } while (!request.page_token().empty());
  EXPECT_THAT(seen, ElementsAre(names[2], names[4], names[1], names[3], names[0]));
  // A token belongs to its list.
  request.set_page_token(calls().List(request)->next_page_token());
  request.set_filter("");
  EXPECT_THAT(FieldsOf(calls().List(request).status()), ElementsAre("page_token"));
  request.set_filter("nonsense");
  request.set_order_by("nonsense");
  request.set_page_size(-1);
  EXPECT_THAT(FieldsOf(calls().List(request).status()),
              ElementsAre("page_size", "filter", "order_by"));
  engine_->Release(kHeld);
}

TEST_F(JobChangesTest, AQuoteSaysWhatAJobWouldTakeAndMakesNone) {
  engine_->TakeTime("Step_Inference", absl::Seconds(2));
  engine_->TakeTime("Model_Initialization", absl::Seconds(40));
  Open();
  wan::v1::QuoteRequest request;
  *request.mutable_request() = Request();
  auto quote = service_->Quote(request);
  ASSERT_TRUE(quote.ok()) << quote.status();
  EXPECT_EQ(quote->steps(), 3);
  EXPECT_EQ(quote->request().width(), 64);
  EXPECT_GT(quote->flops(), 0);
  EXPECT_FALSE(quote->has_warm_time()) << "nothing was observed yet";
  EXPECT_THAT(Listed(""), IsEmpty());

  RunToEnd(Create());
  quote = service_->Quote(request);
  ASSERT_TRUE(quote.ok()) << quote.status();
  EXPECT_DOUBLE_EQ(quote->warm_time().p50_seconds(), 6);
  EXPECT_DOUBLE_EQ(quote->warm_time().p90_seconds(), 9);
  EXPECT_DOUBLE_EQ(quote->cold_time().p50_seconds(), 46);
  EXPECT_EQ(quote->jobs_ahead(), 0);
  EXPECT_DOUBLE_EQ(quote->queue_time().p50_seconds(), 0);

  HoldOne();
  Create();
  quote = service_->Quote(request);
  EXPECT_EQ(quote->jobs_ahead(), 1);
  EXPECT_DOUBLE_EQ(quote->queue_time().p50_seconds(), 12);
  request.mutable_request()->set_priority(5);
  quote = service_->Quote(request);
  EXPECT_EQ(quote->jobs_ahead(), 0);
  EXPECT_DOUBLE_EQ(quote->queue_time().p50_seconds(), 6);

  request.mutable_request()->set_width(63);
  request.mutable_request()->set_priority(101);
  EXPECT_THAT(FieldsOf(service_->Quote(request).status()), ElementsAre("priority", "width"));
  request.mutable_request()->set_model("nobody");
  EXPECT_THAT(FieldsOf(service_->Quote(request).status()), ElementsAre("priority", "model"));
  engine_->Release(kHeld);
}

TEST_F(JobChangesTest, AQuoteSaysHowItWouldCompute) {
  engine_->TakeTime("Step_Inference", absl::Seconds(2));
  Open();
  wan::v1::QuoteRequest request;
  *request.mutable_request() = Request();
  RunToEnd(Create());
  auto quote = service_->Quote(request);
  ASSERT_TRUE(quote.ok()) << quote.status();
  EXPECT_EQ(quote->request().quality(), wan::v1::QUALITY_EXACT);
  EXPECT_FALSE(quote->eight_bits());
  EXPECT_THAT(quote->reused_steps(), IsEmpty());

  request.mutable_request()->set_quality(wan::v1::QUALITY_FAST);
  quote = service_->Quote(request);
  ASSERT_TRUE(quote.ok()) << quote.status();
  EXPECT_EQ(quote->request().quality(), wan::v1::QUALITY_FAST);
  EXPECT_TRUE(quote->eight_bits());
  EXPECT_THAT(quote->reused_steps(), ElementsAre(1));
  EXPECT_DOUBLE_EQ(quote->warm_time().p50_seconds(), 6) << "as exact until a job has run";
  // What such jobs take changes nothing for exact ones.
  engine_->TakeTime("Step_Inference", absl::Seconds(1));
  RunToEnd(Create(request.request()));
  EXPECT_NEAR(service_->Quote(request)->warm_time().p50_seconds(), 3, 0.01);
  request.mutable_request()->clear_quality();
  EXPECT_NEAR(service_->Quote(request)->warm_time().p50_seconds(), 6, 0.01);
}

TEST_F(JobChangesTest, BeforeTheFirstStepTimesFollowFromThePlan) {
  engine_->AssumeRate(1e9);
  engine_->TakeTime("Step_Inference", absl::Seconds(2));
  engine_->TakeTime("Model_Initialization", absl::Seconds(40));
  Open();
  wan::v1::QuoteRequest request;
  *request.mutable_request() = Request();
  auto quote = service_->Quote(request);
  ASSERT_TRUE(quote.ok()) << quote.status();
  const double expected = quote->flops() / 1e9;
  EXPECT_GT(expected, 0);
  EXPECT_DOUBLE_EQ(quote->warm_time().p50_seconds(), expected);
  EXPECT_DOUBLE_EQ(quote->warm_time().p90_seconds(), 3 * expected);
  EXPECT_DOUBLE_EQ(quote->cold_time().p50_seconds(), expected + 40);
  EXPECT_TRUE(quote->has_queue_time());

  const std::string running = HoldOne();
  const std::string queued = Create();
  EXPECT_DOUBLE_EQ(Get(running).eta_seconds(), expected);
  EXPECT_DOUBLE_EQ(Get(queued).eta_seconds(), 2 * expected);
  EXPECT_DOUBLE_EQ(Get(queued).eta_p90_seconds(), 6 * expected);
  EXPECT_DOUBLE_EQ(BlockingReader(*service_, queued).Next()->queued().eta_seconds(), expected);
  clock_.Advance(absl::Seconds(1));
  EXPECT_DOUBLE_EQ(Get(running).eta_seconds(), expected - 1);
  EXPECT_EQ(service_->Stats().unestimated.at("m"), 0);
  EXPECT_FALSE(Get(queued).has_reserved_device_seconds()) << "no quota pays for what is assumed";

  engine_->Release(kHeld);
  RunToEnd(queued);
  quote = service_->Quote(request);
  // With half of the second that the first job was held for.
  EXPECT_DOUBLE_EQ(quote->warm_time().p50_seconds(), 6.5);
  EXPECT_DOUBLE_EQ(quote->warm_time().p90_seconds(), 9.75);
}

TEST_F(JobChangesTest, AJobSaysWhenItWillEnd) {
  engine_->TakeTime("Step_Inference", absl::Seconds(2));
  Open();
  RunToEnd(Create());
  const std::string running = HoldOne();
  const std::string queued = Create();
  EXPECT_DOUBLE_EQ(Get(running).eta_seconds(), 6);
  EXPECT_DOUBLE_EQ(Get(queued).eta_seconds(), 12);
  EXPECT_DOUBLE_EQ(Get(queued).eta_p90_seconds(), 18);
  clock_.Advance(absl::Seconds(4));
  EXPECT_DOUBLE_EQ(Get(running).eta_seconds(), 2);
  EXPECT_DOUBLE_EQ(Get(running).eta_p90_seconds(), 5);
  engine_->Release(kHeld);
  const auto events = RunToEnd(queued);
  EXPECT_FALSE(Get(queued).has_eta_seconds());
  double last = -1;
  for (const wan::v1::Event& event : events) {
    if (event.has_step_progress()) last = event.step_progress().eta_p90_seconds();
  }
  EXPECT_DOUBLE_EQ(last, 0);
}

}  // namespace
}  // namespace wan::server
