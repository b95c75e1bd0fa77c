#include "server/tracing/job_tracer.h"

#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/api/errors.h"
#include "engine/api/stage.h"
#include "server/conversion/convert.h"
#include "server/store/job_store.h"
#include "server/tracing/span_ids.h"

namespace wan::server {
namespace {

constexpr char kAttemptName[] = "Total_Execution";
constexpr char kLostWithProcess[] = "the server's process ended during the attempt";

TraceSpan SpanOf(const wan::v1::TraceContext& trace) {
  TraceSpan span;
  span.trace_id = trace.trace_id();
  span.tracestate = trace.tracestate();
  return span;
}

// Returns the span of an attempt, but without its times.
TraceSpan AttemptSpanOf(const wan::v1::TraceContext& trace, const std::string& job, int attempt) {
  TraceSpan span = SpanOf(trace);
  span.span_id = AttemptSpanId(job, attempt);
  span.parent_span_id = JobSpanId(job);
  span.name = kAttemptName;
  span.attributes = {{"wan.job", job}, {"wan.attempt", int64_t{attempt}}};
  // Link the span to that of the previous attempt, whose savepoint this attempt may continue.
  if (attempt > 1) span.linked_span_ids.push_back(AttemptSpanId(job, attempt - 1));
  return span;
}

std::string TextOf(absl::string_view text) { return {text.data(), text.size()}; }

// Writes the result of a stage or an attempt to its span. A stop because of a cancellation or
// preemption does not count as a failure.
void SetStatus(const absl::Status& status, TraceSpan& span) {
  if (status.ok()) return;
  if (absl::IsCancelled(status)) {
    span.attributes.push_back({"wan.stopped", true});
    return;
  }
  span.failed = true;
  span.problem = TextOf(status.message());
  const std::string reason = ReasonOf(status);
  span.attributes.push_back(
      {"error.type", reason.empty() ? absl::StatusCodeToString(status.code()) : reason});
}

class AttemptSpans final : public TelemetrySink {
 public:
  AttemptSpans(SpanExporter& exporter, SinkContext context)
      : exporter_(exporter),
        context_(std::move(context)),
        attempt_id_(AttemptSpanId(context_.job, context_.attempt)) {}

  void OnSpanStart(const SpanStart& start) override {
    open_[start.stage] = start.stage.kind == StageKind::kTotalExecution ? attempt_id_ : NewSpanId();
    if (start.step != nullptr && !first_step_.has_value()) first_step_ = start.step->step;
  }

  void OnSpanEnd(const SpanRecord& record) override {
    const auto open = open_.find(record.stage);
    if (open == open_.end()) return;
    TraceSpan span;
    if (record.stage.kind == StageKind::kTotalExecution) {
      span = AttemptSpanOf(context_.trace, context_.job, context_.attempt);
      span.attributes.push_back({"wan.group", int64_t{context_.group}});
      if (first_step_.value_or(0) > 0) {
        span.attributes.push_back({"wan.resumed_steps", int64_t{*first_step_}});
      }
    } else {
      span = SpanOf(context_.trace);
      span.span_id = open->second;
      span.parent_span_id = ParentOf(record.stage.kind);
      span.name = NameOf(record.stage);
    }
    span.start = record.start;
    // Compute the end from the duration, because the wall clock may have been set meanwhile.
    span.end = record.start + absl::Seconds(record.seconds);
    span.attributes.push_back({"wan.model", context_.model});
    if (record.step != nullptr) {
      span.attributes.push_back({"wan.step", int64_t{record.step->step}});
      span.attributes.push_back({"wan.steps", int64_t{record.step->total}});
      span.attributes.push_back({"wan.timestep", record.step->timestep});
      span.attributes.push_back({"wan.expert", std::string(NameOf(record.step->expert))});
    }
    SetStatus(record.status, span);
    open_.erase(open);
    exporter_.Add(std::move(span));
  }

 private:
  std::string ParentOf(StageKind kind) const {
    if (kind == StageKind::kQueueWait) return JobSpanId(context_.job);
    if (kind != StageKind::kLoraMerging) return attempt_id_;
    // Merging a LoRA is part of the loading of a step.
    for (const auto& [stage, id] : open_) {
      if (stage.kind == StageKind::kStepLoading) return id;
    }
    return attempt_id_;
  }

  SpanExporter& exporter_;
  const SinkContext context_;
  const std::string attempt_id_;
  std::map<Stage, std::string> open_;  // the IDs of the spans of the open stages
  std::optional<int> first_step_;      // the step at which the attempt began
};

// Returns the span of an ended job.
TraceSpan JobSpanOf(const wan::v1::Job& job) {
  TraceSpan span = SpanOf(job.trace());
  span.span_id = JobSpanId(job.name());
  span.parent_span_id = job.trace().parent_span_id();
  span.serves_caller = true;
  const wan::v1::GenerationRequest& request = job.request();
  span.name = absl::StrCat("generate ", request.model());
  span.start = ToTime(job.create_time());
  span.end = ToTime(job.end_time());
  span.attributes = {{"wan.job", job.name()},
                     {"wan.model", request.model()},
                     {"wan.width", int64_t{request.width()}},
                     {"wan.height", int64_t{request.height()}},
                     {"wan.frames", int64_t{request.num_frames()}},
                     {"wan.steps", int64_t{request.steps()}},
                     {"wan.seed", int64_t{request.seed()}},
                     {"wan.attempts", int64_t{job.attempt()}},
                     {"wan.state", wan::v1::JobState_Name(job.state())}};
  const auto code = static_cast<absl::StatusCode>(job.error().code());
  span.failed = job.has_error() && code != absl::StatusCode::kCancelled;
  if (span.failed) {
    span.problem = job.error().message();
    span.attributes.push_back({"error.type", ErrorReasonOf(job.error())});
  }
  return span;
}

// Returns the span of the attempt that the job lost when an earlier process ended.
TraceSpan LostAttemptOf(const wan::v1::Job& job) {
  TraceSpan span = AttemptSpanOf(job.trace(), job.name(), job.attempt());
  span.attributes.push_back({"wan.model", job.request().model()});
  span.start = span.end = ToTime(job.start_time());
  if (!job.lost_attempts().empty()) {
    // The span ends at the time of the attempt's last event.
    const wan::v1::LostAttempt& lost = *job.lost_attempts().rbegin();
    if (lost.attempt() == job.attempt()) span.end = ToTime(lost.end_time());
  }
  span.failed = true;
  span.problem = kLostWithProcess;
  span.attributes.push_back({"error.type", "PROCESS_LOST"});
  return span;
}

}  // namespace

SinkFactory JobTracer::StageSinks() {
  return [this](const SinkContext& context) -> std::unique_ptr<TelemetrySink> {
    if (!context.trace.sampled()) return std::make_unique<TelemetrySink>();
    return std::make_unique<AttemptSpans>(exporter_, context);
  };
}

void JobTracer::OnJobState(const wan::v1::Job& job, wan::v1::JobState previous) {
  if (!job.trace().sampled()) return;
  bool lost = false;
  {
    absl::MutexLock lock(&mutex_);
    if (previous == wan::v1::JOB_STATE_UNSPECIFIED) {
      // Make the span at the next change of the job's state, when the row has the entry of the lost
      // attempt.
      if (job.state() == wan::v1::JOB_STATE_RUNNING) lost_.insert(job.name());
      return;
    }
    lost = lost_.erase(job.name()) > 0;
  }
  if (lost) exporter_.Add(LostAttemptOf(job));
  if (IsFinal(job.state())) exporter_.Add(JobSpanOf(job));
}

}  // namespace wan::server
