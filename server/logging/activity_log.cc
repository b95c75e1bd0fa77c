#include "server/logging/activity_log.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "server/conversion/convert.h"
#include "wan/v1/generation.pb.h"
#include "wan/v1/model_management.pb.h"

namespace wan::server {
namespace {

// A job is slow if it took this many times its p90 estimate, and at least the next constant longer,
// because short jobs are often late by a fraction of a second.
constexpr double kSlowJobFactor = 1.5;
constexpr absl::Duration kLeastExcess = absl::Seconds(2);

std::string Text(absl::string_view text) { return {text.data(), text.size()}; }

// Returns the wall-clock time from the start of the latest attempt to the job's end.
double SecondsOf(const wan::v1::Job& job) {
  return std::max(0.0, absl::ToDoubleSeconds(ToTime(job.end_time()) - ToTime(job.start_time())));
}

LogField TraceIdOf(const wan::v1::TraceContext& trace) {
  return trace.trace_id().empty() ? LogField() : LogField("trace_id", trace.trace_id());
}

// Returns the level of the log entry about a job.
LogLevel LevelOf(const wan::v1::Job& job) {
  if (job.state() != wan::v1::JOB_STATE_FAILED) return LogLevel::kInfo;
  // A failed job is a warning for the operator, unless weights or files of the server are damaged.
  const bool damaged = job.error().code() == static_cast<int>(absl::StatusCode::kDataLoss);
  return damaged ? LogLevel::kError : LogLevel::kWarning;
}

class StageLog final : public TelemetrySink {
 public:
  StageLog(Logger& logger, SinkContext context) : logger_(logger), context_(std::move(context)) {}

  void OnSpanEnd(const SpanRecord& record) override {
    if (record.status.ok()) {
      logger_.Log(LogLevel::kDebug, "stage finished",
                  {{"stage", NameOf(record.stage)},
                   {"seconds", record.seconds},
                   {"model", context_.model},
                   {"job", context_.job},
                   {"attempt", context_.attempt},
                   TraceIdOf(context_.trace)});
    } else {
      logger_.Log(LogLevel::kDebug, "stage failed",
                  {{"stage", NameOf(record.stage)},
                   {"seconds", record.seconds},
                   {"model", context_.model},
                   {"job", context_.job},
                   {"attempt", context_.attempt},
                   {"error", record.status.ToString()},
                   TraceIdOf(context_.trace)});
    }
  }

  // Logs one entry for each attempt, although every tile and preview reports its fallback.
  void OnSample(const Sample& sample) override {
    if (sample.name == "attention_kernels") {
      logger_.Log(LogLevel::kInfo, "attention",
                  {{"self", sample.labels.at("self")},
                   {"cross", sample.labels.at("cross")},
                   {"model", context_.model}});
    }
    if (sample.name != "vae_fallback" || std::exchange(fell_back_, true)) return;
    logger_.Log(LogLevel::kWarning, "vae fallback",
                {{"from", sample.labels.at("from")},
                 {"to", sample.labels.at("to")},
                 {"model", context_.model},
                 {"job", context_.job},
                 {"attempt", context_.attempt}});
  }

 private:
  Logger& logger_;
  const SinkContext context_;
  bool fell_back_ = false;
};

// Logs the schedule that requests with the LoRA get, and whether the server recognised the LoRA.
void LogSchedule(Logger& logger, const wan::v1::Model& model, const wan::v1::Lora& lora) {
  const wan::v1::LoraSchedule& schedule = lora.schedule();
  logger.Log(
      LogLevel::kInfo, "lora_schedule",
      {{"model", model.name()},
       {"lora", lora.name()},
       {"recognised", lora.schedule_recognised()},
       {"steps", schedule.steps()},
       {"guidance_scale", absl::StrJoin(schedule.guidance_scale(), ",")},
       schedule.has_shift() ? LogField("shift", schedule.shift()) : LogField(),
       schedule.has_boundary_step() ? LogField("boundary_step", schedule.boundary_step())
                                    : LogField(),
       schedule.sigmas().empty() ? LogField()
                                 : LogField("sigmas", absl::StrJoin(schedule.sigmas(), ","))});
}

// Logs the factor with which the model merges a LoRA, and the tensors of the LoRA's file that it
// left out.
void LogLora(Logger& logger, const wan::v1::Model& model, const wan::v1::Lora& lora,
             const wan::v1::Lora::Part& part) {
  std::string left_out;
  constexpr int kShown = 3;
  for (int i = 0; i < std::min(part.left_out_tensors_size(), kShown); ++i) {
    left_out += (i > 0 ? ", " : "") + part.left_out_tensors(i);
  }
  if (part.left_out_count() > kShown) left_out += ", ...";
  logger.Log(part.left_out_count() > 0 ? LogLevel::kWarning : LogLevel::kInfo, "lora",
             {{"model", model.name()},
              {"lora", lora.name()},
              {"expert", part.expert()},
              {"path", part.path()},
              {"kinds", absl::StrJoin(part.kinds(), ",")},
              {"rank", part.rank()},
              {"tensors", part.tensors()},
              {"min_factor", part.min_factor()},
              {"max_factor", part.max_factor()},
              {"left_out_count", part.left_out_count()},
              {"left_out", left_out}});
}

}  // namespace

void ActivityLog::OnJobState(const wan::v1::Job& job, wan::v1::JobState previous) {
  const std::string& state = wan::v1::JobState_Name(job.state());
  const std::string& before = wan::v1::JobState_Name(previous);
  if (job.has_error()) {
    logger_.Log(LevelOf(job), "job",
                {{"job", job.name()},
                 {"model", job.request().model()},
                 {"state", state},
                 {"previous", before},
                 {"attempt", job.attempt()},
                 {"error", job.error().message()},
                 TraceIdOf(job.trace())});
    return;
  }
  if (job.state() == wan::v1::JOB_STATE_COMPLETED) {
    const wan::v1::GenerationRequest& request = job.request();
    int64_t bytes = 0;
    for (const wan::v1::Artifact& artifact : job.artifacts()) {
      bytes += static_cast<int64_t>(artifact.size_bytes());
    }
    logger_.Log(
        LogLevel::kInfo, "job",
        {{"job", job.name()},
         {"model", request.model()},
         {"state", state},
         {"previous", before},
         {"attempt", job.attempt()},
         {"seconds", SecondsOf(job)},
         {"steps", request.steps()},
         {"shape", absl::StrCat(request.width(), "x", request.height(), "x", request.num_frames())},
         {"bytes", bytes},
         TraceIdOf(job.trace())});
    return;
  }
  logger_.Log(LogLevel::kInfo, "job",
              {{"job", job.name()},
               {"model", job.request().model()},
               {"state", state},
               {"previous", before},
               {"attempt", job.attempt()},
               TraceIdOf(job.trace())});
}

void ActivityLog::OnEstimateMet(const wan::v1::Job& job, const EstimateMet& met) {
  if (met.taken <= kSlowJobFactor * met.p90 || met.taken - met.p90 < kLeastExcess) return;
  logger_.Log(LogLevel::kWarning, "slow job",
              {{"job", job.name()},
               {"model", job.request().model()},
               {"attempt", job.attempt()},
               {"seconds", absl::ToDoubleSeconds(met.taken)},
               {"estimate_p50_seconds", absl::ToDoubleSeconds(met.p50)},
               {"estimate_p90_seconds", absl::ToDoubleSeconds(met.p90)},
               {"slowest_stage", met.slowest_stage},
               {"slowest_stage_seconds", absl::ToDoubleSeconds(met.slowest_stage_taken)}});
}

void ActivityLog::OnHealth(const NotServingReasons& reasons) {
  if (reasons.empty()) {
    logger_.Log(LogLevel::kInfo, "serving");
    return;
  }
  // Loading, draining and stopping are expected, so only other reasons are warnings.
  const bool asked = std::all_of(reasons.begin(), reasons.end(), [](const NotServing& reason) {
    return reason.reason == kNotServingLoading || reason.reason == kNotServingDraining ||
           reason.reason == kNotServingStopping;
  });
  logger_.Log(asked ? LogLevel::kInfo : LogLevel::kWarning, "not serving",
              {{"reasons", CodesOf(reasons)}, {"why", OneLine(reasons)}});
}

void ActivityLog::OnModelState(const wan::v1::Model& model) {
  const std::string& state = wan::v1::ModelState_Name(model.state());
  if (model.state() == wan::v1::MODEL_STATE_FAILED) {
    logger_.Log(LogLevel::kError, "model",
                {{"model", model.name()},
                 {"state", state},
                 {"path", model.path()},
                 {"error", model.error().message()}});
    return;
  }
  logger_.Log(LogLevel::kInfo, "model",
              {{"model", model.name()}, {"state", state}, {"path", model.path()}});
  for (const wan::v1::ModelComponent& component : model.components()) {
    if (component.stored_as().empty()) continue;
    logger_.Log(LogLevel::kInfo, "widened weights",
                {{"model", model.name()},
                 {"component", component.name()},
                 {"stored_as", component.stored_as()},
                 {"dtype", component.dtype()}});
  }
  if (model.state() == wan::v1::MODEL_STATE_READY && !model.distillation().empty()) {
    logger_.Log(LogLevel::kInfo, "distilled checkpoint",
                {{"model", model.name()}, {"recognised", model.distillation()}});
  }
  if (model.state() == wan::v1::MODEL_STATE_READY && model.has_tiny_decoder_error()) {
    logger_.Log(LogLevel::kWarning, "tiny decoder skipped",
                {{"model", model.name()}, {"error", model.tiny_decoder_error().message()}});
  }
  for (const wan::v1::Lora& lora : model.loras()) {
    for (const wan::v1::Lora::Part& part : lora.parts()) LogLora(logger_, model, lora, part);
    if (lora.has_schedule()) LogSchedule(logger_, model, lora);
  }
  for (const wan::v1::SkippedLora& skipped : model.skipped_loras()) {
    logger_.Log(LogLevel::kWarning, "lora_skipped",
                {{"model", model.name()},
                 {"lora", skipped.name()},
                 {"path", skipped.path()},
                 {"error", skipped.error().message()}});
  }
}

void ActivityLog::OnProblem(const absl::Status& problem) {
  logger_.Log(
      LogLevel::kError, "problem",
      {{"code", absl::StatusCodeToString(problem.code())}, {"error", Text(problem.message())}});
}

void ActivityLog::OnGroupLost(int group, std::string_view device, const absl::Status& problem) {
  logger_.Log(
      LogLevel::kError, "device group lost",
      {{"group", group}, {"device", std::string(device)}, {"error", Text(problem.message())}});
}

void ActivityLog::OnDeviceLost(DeviceLoss /*cause*/, const absl::Status& problem) {
  logger_.Log(LogLevel::kError, "device lost", {{"error", Text(problem.message())}});
}

void ActivityLog::OnStorage(const absl::Status& status) {
  if (status.ok()) {
    logger_.Log(LogLevel::kInfo, "storage", {{"writable", true}});
  } else {
    logger_.Log(LogLevel::kError, "storage",
                {{"writable", false}, {"error", Text(status.message())}});
  }
}

void ActivityLog::OnWebhook(const WebhookOutcome& outcome) {
  const bool delivered = outcome.kind == WebhookOutcome::Kind::kDelivered;
  const bool given_up = outcome.kind == WebhookOutcome::Kind::kGivenUp;
  // Log only the host of the URL, because the rest may contain secrets.
  logger_.Log(given_up ? LogLevel::kError : LogLevel::kInfo,
              delivered  ? "webhook delivered"
              : given_up ? "webhook given up"
                         : "webhook not delivered yet",
              {{"job", outcome.job},
               {"host", outcome.host},
               {"attempts", outcome.attempts},
               {"problem", Text(outcome.problem)}});
}

void ActivityLog::OnSpans(const SpansOutcome& outcome) {
  const bool lost = !outcome.problem.empty();
  if (spans_lost_.exchange(lost) == lost) return;
  if (lost) {
    logger_.Log(LogLevel::kWarning, "spans are lost", {{"problem", outcome.problem}});
  } else {
    logger_.Log(LogLevel::kInfo, "spans are exported again");
  }
}

void ActivityLog::OnDraining() { logger_.Log(LogLevel::kInfo, "draining", {}); }
void ActivityLog::OnUndrained() { logger_.Log(LogLevel::kInfo, "undrained", {}); }
void ActivityLog::OnRetention(const RetentionRound& round) {
  int64_t jobs = 0;
  int64_t files_only = 0;
  int64_t bytes = 0;
  // Number of removals for each reason, in the order of RetentionReason.
  int64_t by_reason[] = {0, 0, 0};
  for (const RetentionRound::Removed& removed : round.removed) {
    (removed.files_only ? files_only : jobs) += removed.jobs;
    bytes += removed.bytes;
    by_reason[static_cast<size_t>(removed.reason)] += removed.jobs;
  }
  logger_.Log(LogLevel::kInfo, "retention",
              {{"jobs", jobs},
               {"jobs_without_files", files_only},
               {"bytes", bytes},
               {"by_age", by_reason[0]},
               {"by_bytes", by_reason[1]},
               {"by_count", by_reason[2]},
               {"seconds", round.seconds}});
}

void ActivityLog::OnStopChoice(const StopChoice& choice) {
  const double restart = absl::ToDoubleSeconds(choice.restart_cost);
  const double time = absl::ToDoubleSeconds(choice.may_go_on);
  if (choice.left.has_value()) {
    logger_.Log(LogLevel::kInfo, "running job",
                {{"job", choice.job},
                 {"left_seconds", absl::ToDoubleSeconds(*choice.left)},
                 {"restart_seconds", restart},
                 {"may_go_on_seconds", time}});
  } else {
    logger_.Log(LogLevel::kInfo, "running job",
                {{"job", choice.job}, {"restart_seconds", restart}, {"may_go_on_seconds", time}});
  }
}

SinkFactory ActivityLog::StageSinks() {
  return
      [this](const SinkContext& context) { return std::make_unique<StageLog>(logger_, context); };
}

}  // namespace wan::server
