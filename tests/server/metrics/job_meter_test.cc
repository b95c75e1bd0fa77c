#include "server/metrics/job_meter.h"

#include <gtest/gtest.h>

#include "engine/api/errors.h"
#include "server/conversion/convert.h"
#include "server/conversion/errors.h"
#include "server/metrics/exposition.h"
#include "tests/fakes/fake_clock.h"
#include "tests/support/prometheus_text.h"

namespace wan::server {
namespace {

using support::PrometheusText;

class JobMeterTest : public ::testing::Test {
 protected:
  PrometheusText Scrape() const {
    auto parsed =
        PrometheusText::Parse(WriteMetrics({registry_.Collect(), {}}, MetricFormat::kText));
    EXPECT_TRUE(parsed.ok()) << parsed.status();
    return parsed.ok() ? *std::move(parsed) : PrometheusText();
  }

  wan::v1::Job Job(const std::string& id, wan::v1::JobState state, const std::string& model = "m") {
    wan::v1::Job job;
    job.set_name("jobs/" + id);
    job.set_state(state);
    job.mutable_request()->set_model(model);
    *job.mutable_create_time() = ToProto(clock_.Now());
    return job;
  }

  void Tell(wan::v1::Job& job, wan::v1::JobState state) {
    const wan::v1::JobState previous = job.state();
    job.set_state(state);
    meter_.OnJobState(job, previous);
  }

  fakes::FakeClock clock_;
  prometheus::Registry registry_;
  Exemplars exemplars_;
  JobMeter meter_{registry_, exemplars_, clock_};
};

TEST_F(JobMeterTest, TheSecondsOfAJobNameItAsTheirExemplar) {
  wan::v1::Job job = Job("1", wan::v1::JOB_STATE_QUEUED);
  job.mutable_trace()->set_trace_id("4bf92f3577b34da6a3ce929d0e0e4736");
  clock_.Advance(absl::Seconds(90));
  *job.mutable_end_time() = ToProto(clock_.Now());
  Tell(job, wan::v1::JOB_STATE_COMPLETED);
  const ExemplarTable table = exemplars_.Latest();
  const prometheus::Labels labels = {{"model", "m"}, {"quality", "exact"}, {"state", "completed"}};
  int found = 0;
  for (const auto& exemplar : table.at("wan_job_seconds").at(labels)) {
    if (!exemplar.has_value()) continue;
    ++found;
    EXPECT_EQ(exemplar->job, "jobs/1");
    EXPECT_EQ(exemplar->value, 90);
    EXPECT_EQ(exemplar->time, clock_.Now());
    EXPECT_EQ(exemplar->trace_id, "4bf92f3577b34da6a3ce929d0e0e4736");
  }
  EXPECT_EQ(found, 1);
}

TEST_F(JobMeterTest, JobsAreCountedByTheirQuality) {
  meter_.AddModel("m");
  const auto completed = [&](const char* name, const char* quality) {
    return Scrape().Value(name, {{"model", "m"}, {"quality", quality}, {"state", "completed"}});
  };
  EXPECT_EQ(completed("wan_jobs_total", "fast"), 0) << "there from the start, for rate()";
  EXPECT_EQ(completed("wan_job_seconds_count", "fast"), std::nullopt);
  wan::v1::Job job = Job("1", wan::v1::JOB_STATE_QUEUED);
  job.mutable_request()->set_quality(wan::v1::QUALITY_FAST);
  Tell(job, wan::v1::JOB_STATE_COMPLETED);
  wan::v1::Job older = Job("2", wan::v1::JOB_STATE_QUEUED);  // than the field
  Tell(older, wan::v1::JOB_STATE_COMPLETED);
  for (const char* const quality : {"exact", "fast"}) {
    EXPECT_EQ(completed("wan_jobs_total", quality), 1);
    EXPECT_EQ(completed("wan_job_seconds_count", quality), 1);
  }
  EXPECT_EQ(completed("wan_jobs_total", "high"), 0);
}

TEST_F(JobMeterTest, TheOldestJobIsTheOneThatWasAcceptedFirst) {
  EXPECT_TRUE(meter_.OldestQueued().empty());
  wan::v1::Job first = Job("1", wan::v1::JOB_STATE_UNSPECIFIED);
  Tell(first, wan::v1::JOB_STATE_QUEUED);
  clock_.Advance(absl::Seconds(60));
  wan::v1::Job second = Job("2", wan::v1::JOB_STATE_UNSPECIFIED);
  Tell(second, wan::v1::JOB_STATE_QUEUED);
  wan::v1::Job other = Job("3", wan::v1::JOB_STATE_UNSPECIFIED, "n");
  Tell(other, wan::v1::JOB_STATE_QUEUED);
  clock_.Advance(absl::Seconds(5));
  EXPECT_EQ(meter_.OldestQueued().at("m"), absl::Seconds(65));
  EXPECT_EQ(meter_.OldestQueued().at("n"), absl::Seconds(5));

  Tell(first, wan::v1::JOB_STATE_RUNNING);
  EXPECT_EQ(meter_.OldestQueued().at("m"), absl::Seconds(5));
  // A job that goes back has waited since its acceptance.
  Tell(first, wan::v1::JOB_STATE_QUEUED);
  EXPECT_EQ(meter_.OldestQueued().at("m"), absl::Seconds(65));
  Tell(first, wan::v1::JOB_STATE_CANCELLED);
  Tell(second, wan::v1::JOB_STATE_CANCELLED);
  Tell(other, wan::v1::JOB_STATE_RUNNING);
  EXPECT_TRUE(meter_.OldestQueued().empty());
}

TEST_F(JobMeterTest, AClockThatWasSetBackGivesNoNegativeAge) {
  wan::v1::Job job = Job("1", wan::v1::JOB_STATE_UNSPECIFIED);
  Tell(job, wan::v1::JOB_STATE_QUEUED);
  clock_.Jump(-absl::Hours(1));
  EXPECT_EQ(meter_.OldestQueued().at("m"), absl::ZeroDuration());
}

TEST_F(JobMeterTest, FailuresAndRejectionsHaveTheReasonsOfTheContract) {
  wan::v1::Job job = Job("1", wan::v1::JOB_STATE_RUNNING);
  *job.mutable_error() = ToProto(OutOfMemoryError("no room"));
  Tell(job, wan::v1::JOB_STATE_FAILED);
  job = Job("2", wan::v1::JOB_STATE_RUNNING);
  *job.mutable_error() = ToProto(absl::InternalError("without a reason"));
  Tell(job, wan::v1::JOB_STATE_FAILED);
  job = Job("3", wan::v1::JOB_STATE_RUNNING);
  *job.mutable_error() = ToProto(NotFiniteError("the latents are not finite"));
  Tell(job, wan::v1::JOB_STATE_FAILED);
  meter_.OnJobsRejected(QueueFullError(100, absl::Seconds(1)), 1);
  meter_.OnJobsRejected(InvalidFields({{"width", "is wrong"}}), 30);
  const PrometheusText text = Scrape();
  EXPECT_EQ(text.Value("wan_job_failures_total", {{"model", "m"}, {"reason", "OUT_OF_MEMORY"}}), 1);
  EXPECT_EQ(text.Value("wan_job_failures_total", {{"model", "m"}, {"reason", "INTERNAL"}}), 1);
  EXPECT_EQ(text.Value("wan_job_failures_total", {{"model", "m"}, {"reason", "NOT_FINITE"}}), 1);
  EXPECT_EQ(text.Value("wan_jobs_rejected_total", {{"reason", "QUEUE_FULL"}}), 1);
  EXPECT_EQ(text.Value("wan_jobs_rejected_total", {{"reason", "INVALID_ARGUMENT"}}), 30);
}

TEST_F(JobMeterTest, CancelsAndRequeuesHaveTheirCauses) {
  const wan::v1::Job job = Job("1", wan::v1::JOB_STATE_CANCELLED);
  meter_.OnJobCancelled(job, StopCause::kCancelled);
  meter_.OnJobCancelled(job, StopCause::kCallerGone);
  meter_.OnJobCancelled(job, StopCause::kCallerGone);
  meter_.OnJobRequeued(job, RequeueCause::kStorage);
  const PrometheusText text = Scrape();
  EXPECT_EQ(text.Value("wan_job_cancels_total", {{"model", "m"}, {"reason", "cancelled"}}), 1);
  EXPECT_EQ(text.Value("wan_job_cancels_total", {{"model", "m"}, {"reason", "caller_gone"}}), 2);
  EXPECT_EQ(text.Value("wan_job_requeues_total", {{"model", "m"}, {"reason", "storage"}}), 1);
}

TEST_F(JobMeterTest, TheErrorOfEstimatesIsARatio) {
  const wan::v1::Job job = Job("1", wan::v1::JOB_STATE_COMPLETED);
  // Longer than the median by a fifth, and within the estimate for nine of ten.
  meter_.OnEstimateMet(job, {absl::Seconds(12), absl::Seconds(10), absl::Seconds(15)});
  // Nothing was estimated: a job whose earlier attempt had done all.
  meter_.OnEstimateMet(job, {absl::Seconds(12), absl::ZeroDuration(), absl::ZeroDuration()});
  const PrometheusText text = Scrape();
  const auto at_most = [&](const char* quantile, const char* bound) {
    return text.Value("wan_eta_ratio_bucket",
                      {{"model", "m"}, {"estimate", quantile}, {"le", bound}});
  };
  EXPECT_EQ(at_most("p50", "1.0"), 0);
  EXPECT_EQ(at_most("p50", "1.2"), 1);
  EXPECT_EQ(at_most("p90", "0.8"), 1);
  EXPECT_EQ(at_most("p90", "+Inf"), 1);
}

// Two weeks in a queue are within the buckets.
TEST_F(JobMeterTest, TheTopBucketIsAboveALongQueue) {
  wan::v1::Job job = Job("1", wan::v1::JOB_STATE_RUNNING);
  clock_.Advance(absl::Hours(24 * 13));
  *job.mutable_end_time() = ToProto(clock_.Now());
  Tell(job, wan::v1::JOB_STATE_COMPLETED);
  double bounded = 0;
  const support::PrometheusText scraped = Scrape();
  for (const auto& sample : scraped.Find("wan_job_seconds")->samples) {
    const auto bound = sample.labels.find("le");
    if (bound != sample.labels.end() && bound->second != "+Inf") {
      bounded = std::max(bounded, sample.value);
    }
  }
  EXPECT_EQ(bounded, 1);
}

}  // namespace
}  // namespace wan::server
