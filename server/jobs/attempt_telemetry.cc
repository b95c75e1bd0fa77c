#include "server/jobs/attempt_telemetry.h"

#include <optional>
#include <string>
#include <utility>

#include "server/conversion/convert.h"
#include "server/conversion/report.h"

namespace wan::server {
namespace {

SinkContext ContextOf(const RunnerParts& parts, const wan::v1::Job& job) {
  const wan::v1::GenerationRequest& asked = job.request();
  return {.model = asked.model(),
          .job = job.name(),
          .attempt = job.attempt(),
          .shape = {asked.width(), asked.height(), asked.num_frames()},
          .quality = std::string(QualityOf(asked)),
          .group = parts.group,
          .trace = job.trace()};
}

// Returns the share of each device, in the order of the ranks. Leaves fields unset that cannot be
// measured.
std::vector<wan::v1::DeviceShare> SharesOf(GroupProbe& probe) {
  std::vector<wan::v1::DeviceShare> shares;
  for (const DeviceUse& use : probe.Finish()) {
    wan::v1::DeviceShare& share = shares.emplace_back();
    share.set_device(use.device);
    share.set_name(use.name);
    share.set_uuid(use.uuid);
    const ResourceUsage& usage = use.usage;
    if (usage.sm_activity_percent) share.set_sm_activity_percent(*usage.sm_activity_percent);
    const GpuUsage& gpu = usage.gpu;
    if (gpu.power_watts) share.set_power_watts(*gpu.power_watts);
    if (gpu.energy_joules) share.set_energy_joules(*gpu.energy_joules);
    if (gpu.temperature_peak_celsius) {
      share.set_temperature_peak_celsius(*gpu.temperature_peak_celsius);
    }
    if (gpu.throttled_seconds) share.set_throttled_seconds(*gpu.throttled_seconds);
    if (usage.gpu_memory_peak_bytes) share.set_gpu_memory_peak_bytes(*usage.gpu_memory_peak_bytes);
    if (usage.gpu_weights_peak_bytes) {
      share.set_gpu_weights_peak_bytes(*usage.gpu_weights_peak_bytes);
    }
    if (use.exchanged_bytes) share.set_exchanged_bytes(*use.exchanged_bytes);
    if (use.exchange_seconds) share.set_exchange_seconds(*use.exchange_seconds);
  }
  return shares;
}

}  // namespace

AttemptTelemetry::AttemptTelemetry(const RunnerParts& parts, const Attempt& attempt)
    : parts_(parts),
      attempt_(attempt),
      events_(attempt.job.request().model(), attempt.job.attempt(), parts.estimator,
              [this](std::vector<wan::v1::Event> added,
                     const std::optional<wan::v1::StepProgress>& progress) {
                const std::string& job = attempt_.job.name();
                const bool step_ended = !added.empty() && added.back().has_step_progress();
                parts_.states.AddProgress(job, std::move(added), progress);
                // Do not give way while the data folder takes no writes: no other job could begin,
                // and the device would be idle.
                if (step_ended && parts_.storage.status().ok()) {
                  parts_.states.PreemptRunning(job, parts_.preempt_priority_gap);
                }
              }),
      extra_(MakeSinks(parts.sinks, ContextOf(parts, attempt.job))),
      progress_(attempt.job.name(), attempt.job.request().model(), parts.estimator, parts.progress),
      recorder_(parts.clock, parts.engine().Monitor(), Views()) {
  recorder_.RecordPast(StageKind::kQueueWait, attempt.queued_since, attempt.waited);
  DescribeSurroundings();
  timeline_ = parts.engine().Monitor().StartTimeline();
  devices_ = parts.engine().Monitor().StartGroupProbe();
}

std::vector<TelemetrySink*> AttemptTelemetry::Views() {
  std::vector<TelemetrySink*> views = {&events_, attempt_.report.get(), &progress_};
  for (const auto& sink : extra_) views.push_back(sink.get());
  return views;
}

void AttemptTelemetry::DescribeSurroundings() {
  wan::v1::SystemDescription system = ToProto(parts_.engine().Device().system);
  system.set_server_version(parts_.server_version);
  system.set_server_revision(parts_.server_revision);
  const std::optional<wan::v1::StageReport> load =
      parts_.models.LoadReport(attempt_.job.request().model(), parts_.group);
  attempt_.report->Annotate([&](wan::v1::JobReport& report) {
    *report.mutable_system() = std::move(system);
    if (load.has_value()) *report.mutable_model_load() = *load;
  });
}

void AttemptTelemetry::SetPlan(const GenerationPlan& plan) {
  steps_ = static_cast<int>(plan.steps.size());
  events_.SetPlan(plan.stages);
  for (const StagePlan& stage : plan.stages) {
    if (!stage.flops.has_value()) continue;
    recorder_.Record({"planned_flops", *stage.flops, {{"stage", NameOf(stage.stage)}}});
  }
  progress_.SetPlan(plan.stages);
}

void AttemptTelemetry::DescribePlan(const GenerationPlan& plan, const ModelDescription& model) {
  attempt_.report->Annotate([&](wan::v1::JobReport& report) {
    *report.mutable_plan() = ReportOf(plan, model);
    if (plan.request.image != nullptr) report.set_image_bytes(plan.request.image->size());
  });
}

void AttemptTelemetry::Resume(int steps_done) {
  events_.Resume(steps_done, steps_);
  attempt_.report->Resume(steps_done);
}

void AttemptTelemetry::Finish() {
  if (devices_ != nullptr) {
    const std::vector<wan::v1::DeviceShare> shares = SharesOf(*devices_);
    attempt_.report->Annotate([&](wan::v1::JobReport& report) {
      report.mutable_devices()->Assign(shares.begin(), shares.end());
    });
  }
  if (timeline_ == nullptr) return;
  const std::vector<TimelinePoint> points = timeline_->Points();
  attempt_.report->Annotate(
      [&](wan::v1::JobReport& report) { *report.mutable_timeline() = ToProto(points); });
}

}  // namespace wan::server
