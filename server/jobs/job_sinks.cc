#include "server/jobs/job_sinks.h"

#include <algorithm>
#include <map>

#include "server/conversion/convert.h"

namespace wan::server {

EventSink::EventSink(std::string model, int attempt, TimeEstimator& estimator, Emit emit)
    : model_(std::move(model)), attempt_(attempt), estimator_(estimator), emit_(std::move(emit)) {}

void EventSink::SetPlan(std::vector<StagePlan> stages) { remaining_ = std::move(stages); }

void EventSink::Resume(int steps_done, int steps) {
  const auto is_done = [&](const StagePlan& stage) {
    switch (stage.stage.kind) {
      case StageKind::kStepLoading:
      case StageKind::kStepInference:
        return stage.stage.step < steps_done;
      case StageKind::kVaeDecoding:
      case StageKind::kVideoEncoding:
        return false;
      default:
        return steps_done == steps;
    }
  };
  std::erase_if(remaining_, is_done);
  wan::v1::StepProgress progress;
  progress.set_step(steps_done);
  progress.set_total(steps);
  const std::optional<double> eta = estimator_.Seconds(model_, PlannedWork(remaining_));
  if (eta.has_value()) progress.set_eta_seconds(*eta);
  wan::v1::Event event = NewEvent();
  event.mutable_resumed()->set_step(steps_done);
  emit_({std::move(event)}, progress);
}

wan::v1::Event EventSink::NewEvent() const {
  wan::v1::Event event;
  event.set_attempt(attempt_);
  return event;
}

void EventSink::OnSpanStart(const SpanStart& start) {
  wan::v1::Event event = NewEvent();
  event.mutable_stage_started()->set_stage(NameOf(start.stage));
  emit_({std::move(event)}, std::nullopt);
}

void EventSink::OnSpanEnd(const SpanRecord& record) {
  FinishStage(record);
  std::vector<wan::v1::Event> events;
  events.push_back(NewEvent());
  *events.back().mutable_stage_finished() = ToProto(record);
  std::optional<wan::v1::StepProgress> progress;
  if (record.step != nullptr && record.status.ok() &&
      record.stage.kind == StageKind::kStepInference) {
    progress = ToStepProgress(record);
    const std::optional<double> eta = estimator_.Seconds(model_, PlannedWork(remaining_));
    if (eta.has_value()) {
      const TimeEstimator::Spread spread = estimator_.JobSpread();
      progress->set_eta_seconds(*eta * spread.p50);
      progress->set_eta_p90_seconds(*eta * spread.p90);
    }
    events.push_back(NewEvent());
    *events.back().mutable_step_progress() = *progress;
  }
  emit_(std::move(events), progress);
}

void EventSink::FinishStage(const SpanRecord& record) {
  const auto planned =
      std::find_if(remaining_.begin(), remaining_.end(),
                   [&](const StagePlan& stage) { return stage.stage == record.stage; });
  if (planned == remaining_.end()) return;
  if (record.status.ok()) estimator_.Observe(model_, *planned, record.seconds);
  remaining_.erase(planned);
}

ReportSink::ReportSink(wan::v1::JobReport header) : header_(std::move(header)) {}

void SpanReportSink::OnSpanEnd(const SpanRecord& record) {
  if (record.stage.kind == kind_ && record.status.ok()) report_ = ToProto(record);
}

void ReportSink::Annotate(const std::function<void(wan::v1::JobReport& header)>& change) {
  absl::MutexLock lock(&mutex_);
  change(header_);
}

void ReportSink::Resume(int steps_done) {
  absl::MutexLock lock(&mutex_);
  const bool has_steps = std::any_of(slots_.begin(), slots_.end(), [](const Slot& slot) {
    return slot.stage.kind == StageKind::kStepInference;
  });
  if (!has_steps) header_.set_resumed_steps(steps_done);
}

wan::v1::JobReport ReportSink::Snapshot(const wan::v1::Job& job) const {
  absl::MutexLock lock(&mutex_);
  wan::v1::JobReport report = header_;
  for (const Slot& slot : slots_) {
    if (slot.report.has_value()) *report.add_stages() = *slot.report;
  }
  report.set_state(job.state());
  *report.mutable_request() = job.request();
  report.set_image_sha256(job.image_sha256());
  if (job.has_provenance()) *report.mutable_provenance() = job.provenance();
  return report;
}

std::pair<std::string, absl::Duration> ReportSink::SlowestKind() const {
  absl::MutexLock lock(&mutex_);
  std::map<StageKind, double> seconds;
  for (const Slot& slot : slots_) {
    const StageKind kind = slot.stage.kind;
    if (!slot.report.has_value() || kind == StageKind::kQueueWait ||
        kind == StageKind::kTotalExecution) {
      continue;
    }
    seconds[kind] += slot.report->seconds();
  }
  const auto slowest = std::max_element(
      seconds.begin(), seconds.end(),
      [](const auto& one, const auto& other) { return one.second < other.second; });
  if (slowest == seconds.end()) return {};
  return {std::string(NameOf(slowest->first)), absl::Seconds(slowest->second)};
}

void ReportSink::OnSpanStart(const SpanStart& start) {
  absl::MutexLock lock(&mutex_);
  slots_.push_back({start.stage, start.start, std::nullopt});
}

void ReportSink::OnSpanEnd(const SpanRecord& record) {
  absl::MutexLock lock(&mutex_);
  const auto slot = std::find_if(slots_.begin(), slots_.end(), [&](const Slot& candidate) {
    return !candidate.report.has_value() && candidate.stage == record.stage &&
           candidate.start == record.start;
  });
  if (slot != slots_.end()) slot->report = ToProto(record);
}

}  // namespace wan::server
