#include "server/jobs/progress_watch.h"

#include <algorithm>
#include <span>
#include <utility>

#include "absl/strings/str_format.h"

namespace wan::server {

void ProgressWatch::Begin(const std::string& job, const Stage& stage, absl::Duration expected) {
  absl::MutexLock lock(&mutex_);
  running_.push_back({job, stage, clock_.MonotonicNanos(), expected});
}

void ProgressWatch::End(const std::string& job, const Stage& stage) {
  absl::MutexLock lock(&mutex_);
  std::erase_if(running_, [&](const Running& running) {
    return running.job == job && running.stage == stage;
  });
}

void ProgressWatch::EndJob(const std::string& job) {
  absl::MutexLock lock(&mutex_);
  std::erase_if(running_, [&](const Running& running) { return running.job == job; });
}

absl::Status ProgressWatch::Check() const {
  const int64_t now = clock_.MonotonicNanos();
  absl::MutexLock lock(&mutex_);
  for (const Running& running : running_) {
    const absl::Duration taken = absl::Nanoseconds(now - running.begin_nanos);
    if (taken <= std::max(kLeast, kTimes * running.expected)) continue;
    return absl::DeadlineExceededError(absl::StrFormat(
        "%s of %s makes no progress: it has run for %.0f s and should take %.1f s; the server must "
        "be started again, and the job goes on from its latest savepoint",
        NameOf(running.stage), running.job, absl::ToDoubleSeconds(taken),
        absl::ToDoubleSeconds(running.expected)));
  }
  return absl::OkStatus();
}

ProgressSink::ProgressSink(std::string job, std::string model, const TimeEstimator& estimator,
                           ProgressWatch& watch)
    : job_(std::move(job)), model_(std::move(model)), estimator_(estimator), watch_(watch) {}

ProgressSink::~ProgressSink() { watch_.EndJob(job_); }

void ProgressSink::OnSpanStart(const SpanStart& start) {
  // Do not watch the autoencoder: before its first run, its estimate uses the rate of the steps;
  // but in another precision, or on a CPU, it may be far slower without being stuck.
  const StageKind kind = start.stage.kind;
  if (kind == StageKind::kVaeEncoding || kind == StageKind::kVaeDecoding) return;
  const auto planned = std::find_if(stages_.begin(), stages_.end(), [&](const StagePlan& stage) {
    return stage.stage == start.stage;
  });
  if (planned == stages_.end() || !planned->flops.has_value()) return;
  const std::optional<double> expected =
      estimator_.Seconds(model_, PlannedWork(std::span(&*planned, 1)));
  if (expected.has_value()) watch_.Begin(job_, start.stage, absl::Seconds(*expected));
}

void ProgressSink::OnSpanEnd(const SpanRecord& record) { watch_.End(job_, record.stage); }

}  // namespace wan::server
