#include "server/metrics/job_meter.h"

#include <algorithm>
#include <string_view>

#include "engine/api/errors.h"
#include "engine/api/quality.h"
#include "proto/enum_words.h"
#include "server/conversion/convert.h"
#include "server/conversion/errors.h"
#include "server/metrics/families.h"

namespace wan::server {
namespace {

constexpr wan::v1::JobState kFinalStates[] = {
    wan::v1::JOB_STATE_COMPLETED, wan::v1::JOB_STATE_FAILED, wan::v1::JOB_STATE_CANCELLED};

constexpr char kJobSeconds[] = "wan_job_seconds";

constexpr StopCause kStopCauses[] = {StopCause::kCancelled, StopCause::kDeadline,
                                     StopCause::kCallerGone};
constexpr RequeueCause kRequeueCauses[] = {RequeueCause::kStopped, RequeueCause::kPreempted,
                                           RequeueCause::kLost, RequeueCause::kStorage};

const char* NameOf(StopCause cause) {
  switch (cause) {
    case StopCause::kCancelled:
      return "cancelled";
    case StopCause::kDeadline:
      return "deadline";
    case StopCause::kCallerGone:
      break;
  }
  return "caller_gone";
}

const char* NameOf(RequeueCause cause) {
  switch (cause) {
    case RequeueCause::kStopped:
      return "stopped";
    case RequeueCause::kPreempted:
      return "preempted";
    case RequeueCause::kLost:
      return "lost";
    case RequeueCause::kStorage:
      break;
  }
  return "storage";
}

prometheus::Labels EndLabels(std::string_view model, std::string_view quality,
                             wan::v1::JobState state) {
  return {{"model", std::string(model)},
          {"quality", std::string(quality)},
          {"state", std::string(WordOf(state))}};
}

// The bounds reach from a video of the demo model to two weeks, which a job may spend mostly in the
// queue.
const prometheus::Histogram::BucketBoundaries& JobBounds() {
  static const auto* const bounds =
      new prometheus::Histogram::BucketBoundaries(GrowingBounds(0.1, 1'200'000, 1.5));
  return *bounds;
}

const prometheus::Histogram::BucketBoundaries kRatioBounds = {
    0.25, 0.5, 0.7, 0.8, 0.9, 0.95, 1, 1.05, 1.1, 1.2, 1.35, 1.5, 2, 3, 5};

}  // namespace

struct JobMeter::Families {
  explicit Families(prometheus::Registry& registry)
      : jobs_total(CounterFamily(registry, "wan_jobs_total")),
        rejected(CounterFamily(registry, "wan_jobs_rejected_total")),
        failures(CounterFamily(registry, "wan_job_failures_total")),
        cancels(CounterFamily(registry, "wan_job_cancels_total")),
        requeues(CounterFamily(registry, "wan_job_requeues_total")),
        job_seconds(HistogramFamily(registry, kJobSeconds)),
        eta_ratio(HistogramFamily(registry, "wan_eta_ratio")) {}

  prometheus::Family<prometheus::Counter>& jobs_total;
  prometheus::Family<prometheus::Counter>& rejected;
  prometheus::Family<prometheus::Counter>& failures;
  prometheus::Family<prometheus::Counter>& cancels;
  prometheus::Family<prometheus::Counter>& requeues;
  prometheus::Family<prometheus::Histogram>& job_seconds;
  prometheus::Family<prometheus::Histogram>& eta_ratio;
};

JobMeter::JobMeter(prometheus::Registry& registry, Exemplars& exemplars, Clock& clock)
    : clock_(clock), exemplars_(exemplars), families_(std::make_unique<Families>(registry)) {
  // Create the usual series with 0, so that rate() sees their first increment; other series appear
  // when they occur.
  for (const std::string_view reason :
       {kReasonQueueFull, kReasonModelNotReady, kReasonModelLoading, kReasonQuotaExceeded,
        kReasonDiskReserve, kReasonStorageUnavailable, kReasonServerDraining, kReasonServerStopping,
        kReasonDeviceLost, std::string_view("INVALID_ARGUMENT")}) {
    families_->rejected.Add({{"reason", std::string(reason)}});
  }
}

JobMeter::~JobMeter() = default;

void JobMeter::OnJobState(const wan::v1::Job& job, wan::v1::JobState /*previous*/) {
  NoteQueue(job);
  const std::string& model = job.request().model();
  for (const wan::v1::JobState state : kFinalStates) {
    if (state != job.state()) continue;
    const prometheus::Labels labels = EndLabels(model, QualityOf(job.request()), state);
    families_->jobs_total.Add(labels).Increment();
    // The result is negative if the wall clock was set back.
    const absl::Duration taken = ToTime(job.end_time()) - ToTime(job.create_time());
    const double seconds = absl::ToDoubleSeconds(std::max(taken, absl::ZeroDuration()));
    families_->job_seconds.Add(labels, JobBounds()).Observe(seconds);
    exemplars_.Note(kJobSeconds, labels, JobBounds(),
                    {seconds, ToTime(job.end_time()), job.name(), job.trace().trace_id()});
  }
  if (job.state() == wan::v1::JOB_STATE_FAILED) {
    families_->failures.Add({{"model", model}, {"reason", ErrorReasonOf(job.error())}}).Increment();
  }
}

void JobMeter::NoteQueue(const wan::v1::Job& job) {
  const std::string& model = job.request().model();
  const std::pair<absl::Time, std::string> entry(ToTime(job.create_time()), job.name());
  absl::MutexLock lock(&mutex_);
  if (job.state() == wan::v1::JOB_STATE_QUEUED) {
    waiting_[model].insert(entry);
    return;
  }
  const auto found = waiting_.find(model);
  if (found == waiting_.end()) return;
  found->second.erase(entry);
  if (found->second.empty()) waiting_.erase(found);
}

std::map<std::string, absl::Duration> JobMeter::OldestQueued() const {
  const absl::Time now = clock_.Now();
  std::map<std::string, absl::Duration> ages;
  absl::MutexLock lock(&mutex_);
  for (const auto& [model, jobs] : waiting_) {
    ages[model] = std::max(now - jobs.begin()->first, absl::ZeroDuration());
  }
  return ages;
}

void JobMeter::OnJobCancelled(const wan::v1::Job& job, StopCause cause) {
  families_->cancels.Add({{"model", job.request().model()}, {"reason", NameOf(cause)}}).Increment();
}

void JobMeter::OnJobRequeued(const wan::v1::Job& job, RequeueCause cause) {
  families_->requeues.Add({{"model", job.request().model()}, {"reason", NameOf(cause)}})
      .Increment();
}

void JobMeter::OnJobsRejected(const absl::Status& problem, int jobs) {
  std::string reason = ReasonOf(problem);
  if (reason.empty()) reason = absl::StatusCodeToString(problem.code());
  families_->rejected.Add({{"reason", reason}}).Increment(jobs);
}

void JobMeter::OnEstimateMet(const wan::v1::Job& job, const EstimateMet& met) {
  const auto observe = [&](const char* name, absl::Duration estimate) {
    if (estimate <= absl::ZeroDuration()) return;
    families_->eta_ratio.Add({{"model", job.request().model()}, {"estimate", name}}, kRatioBounds)
        .Observe(absl::FDivDuration(met.taken, estimate));
  };
  observe("p50", met.p50);
  observe("p90", met.p90);
}

void JobMeter::AddModel(const std::string& model) {
  for (const wan::v1::JobState state : kFinalStates) {
    for (const Quality quality : kQualities) {
      families_->jobs_total.Add(EndLabels(model, NameOf(quality), state));
    }
    families_->job_seconds.Add(EndLabels(model, NameOf(Quality::kExact), state), JobBounds());
  }
  for (const char* const estimate : {"p50", "p90"}) {
    families_->eta_ratio.Add({{"model", model}, {"estimate", estimate}}, kRatioBounds);
  }
  for (const StopCause cause : kStopCauses) {
    families_->cancels.Add({{"model", model}, {"reason", NameOf(cause)}});
  }
  for (const RequeueCause cause : kRequeueCauses) {
    families_->requeues.Add({{"model", model}, {"reason", NameOf(cause)}});
  }
  for (const std::string_view reason : {kReasonOutOfMemory, kReasonNotFinite}) {
    families_->failures.Add({{"model", model}, {"reason", std::string(reason)}});
  }
}

}  // namespace wan::server
