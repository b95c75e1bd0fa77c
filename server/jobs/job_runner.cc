#include "server/jobs/job_runner.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/api/errors.h"
#include "engine/api/storage_error.h"
#include "server/conversion/convert.h"
#include "server/conversion/errors.h"
#include "server/conversion/public_text.h"
#include "server/conversion/report.h"
#include "server/jobs/device_shares.h"
#include "server/jobs/engine_call.h"
#include "server/jobs/job_savepoints.h"
#include "server/jobs/receipts.h"

namespace wan::server {
namespace {

// A reason of the engine is one of the server's.
static_assert(kReasonStorage == kReasonStorageUnavailable);

// How often a job goes back to the queue because the disk refused a file for a moment.
constexpr int kMostRefusals = 3;
constexpr uint64_t kNearlyFull = uint64_t{1} << 20;

// Sends previews to the watchers, tells where the work goes on, and collects what the job completes
// without.
class AttemptObserver final : public GenerationObserver {
 public:
  AttemptObserver(EventLog& log, EventSink& events, const Attempt& attempt)
      : log_(log), events_(events), job_(attempt.job), report_(*attempt.report) {}

  void OnOmission(const Omission& omission) override { omissions_.push_back(omission); }

  void OnResumed(int steps_done) override {
    events_.Resume(steps_done, job_.request().steps());
    report_.Resume(steps_done);
  }

  // Read it after the engine has returned.
  const std::vector<Omission>& omissions() const { return omissions_; }

  void OnPreview(const Preview& preview) override {
    wan::v1::Event event;
    event.set_attempt(job_.attempt());
    event.mutable_preview()->set_step(preview.step);
    event.mutable_preview()->set_jpeg(preview.jpeg);
    log_.Broadcast(job_.name(), std::move(event));
  }

 private:
  EventLog& log_;
  EventSink& events_;
  const wan::v1::Job& job_;
  ReportSink& report_;
  std::vector<Omission> omissions_;
};

// Returns the outputs that are whole and removes the files of the others, so that no part of them
// is published.
std::vector<OutputFile> WithoutLost(const std::vector<OutputFile>& outputs,
                                    const std::vector<Omission>& omissions) {
  std::vector<OutputFile> whole;
  for (const OutputFile& output : outputs) {
    const bool lost =
        std::any_of(omissions.begin(), omissions.end(),
                    [&](const Omission& omission) { return omission.output == output.kind; });
    if (lost) {
      std::error_code ignored;  // at worst a partial file is published with the folder
      std::filesystem::remove(output.path, ignored);
    } else {
      whole.push_back(output);
    }
  }
  return whole;
}

// Returns the reason of a Requeued event, without the folders, which the storage's state tells.
std::string PostponedBy(const absl::Status& problem, const std::string& data_dir) {
  const absl::string_view why = problem.message();
  return absl::StrCat("the data folder takes no writes: ",
                      WithoutFolders({why.data(), why.size()}, std::span(&data_dir, 1)));
}

}  // namespace

bool JobRunner::RunNext() {
  if (!parts_.storage.status().ok()) return false;
  const std::optional<Attempt> attempt = parts_.table.BeginNext(parts_.group);
  if (!attempt.has_value()) return false;
  // Another group left what waits to this one, which was idle: it may load a model for it now.
  if (parts_.groups.size() > 1) parts_.groups.WakeAll();
  const std::string& name = attempt->job.name();
  // The attempt must be on disk before the engine can take the process with it.
  const absl::Status entered = parts_.log.Flush();
  if (ReasonOf(entered) == kReasonStorageUnavailable) {
    parts_.storage.Report(entered);
    parts_.table.Postpone(name, PostponedBy(entered, parts_.data_dir));
    return false;
  }
  const absl::StatusOr<std::vector<wan::v1::Artifact>> result = Measure(*attempt);
  const bool lost = IsDeviceLost(result.status());
  if (lost) parts_.groups.Leave(parts_.group, result.status());
  const absl::Status storage =
      result.ok() || lost ? absl::OkStatus() : StorageProblem(*attempt, result.status());
  if (!storage.ok()) {
    parts_.storage.Report(storage);
    const wan::v1::JobState state =
        parts_.table.Postpone(name, PostponedBy(storage, parts_.data_dir));
    parts_.artifacts.Discard(name, attempt->job.attempt());
    if (IsFinal(state)) Forget(name);
    return true;
  }
  least_free_bytes_ = 0;
  const absl::Status told = Public(attempt->job, result.status());
  const wan::v1::JobState state = result.ok() ? parts_.table.End(name, result)
                                  : lost ? parts_.table.EndLost(name, std::string(told.message()))
                                         : parts_.table.End(name, told);
  parts_.artifacts.Discard(name, attempt->job.attempt());
  if (result.ok() && state != wan::v1::JOB_STATE_COMPLETED) {
    parts_.artifacts.Remove(name).IgnoreError();  // the next start tries again
  }
  if (IsFinal(state)) Forget(name);
  if (lost) parts_.on_device_lost(parts_.group, result.status());
  return true;
}

void JobRunner::Forget(const std::string& job) {
  parts_.savepoints.Remove(job);
  refusals_.erase(job);
}

absl::Status JobRunner::StorageProblem(const Attempt& attempt, const absl::Status& result) {
  // Check before the attempt's files are discarded: they may be what fills the disk.
  absl::Status problem = parts_.artifacts.CheckWritable(0);
  if (problem.ok() && !IsStorageError(result)) return problem;
  if (problem.ok()) {
    // The disk refused a file and takes others by now. That it does so again and again, as with a
    // quota that no job fits into, is for the job's owner to know.
    if (++refusals_[attempt.job.name()] > kMostRefusals) return problem;
    problem = result;
  }
  const uint64_t free = parts_.artifacts.FreeBytes().value_or(0);
  if (free > kNearlyFull) return problem;  // the cause is not a full disk
  least_free_bytes_ =
      free + parts_.artifacts.StagedBytes(attempt.job.name(), attempt.job.attempt());
  return problem;
}

absl::StatusOr<std::vector<wan::v1::Artifact>> JobRunner::Measure(const Attempt& attempt) {
  const std::string& name = attempt.job.name();
  const std::string& model = attempt.job.request().model();
  const int number = attempt.job.attempt();
  EventSink events(
      model, number, parts_.estimator,
      [&](std::vector<wan::v1::Event> added, const std::optional<wan::v1::StepProgress>& progress) {
        const bool step_ended = !added.empty() && added.back().has_step_progress();
        parts_.table.AddProgress(name, std::move(added), progress);
        // While the data folder takes no writes, no other job would begin.
        if (step_ended && parts_.storage.status().ok()) {
          parts_.table.PreemptRunning(name, parts_.preempt_priority_gap);
        }
      });
  const wan::v1::GenerationRequest& asked = attempt.job.request();
  const auto extra = MakeSinks(parts_.sinks, {model,
                                              name,
                                              number,
                                              {asked.width(), asked.height(), asked.num_frames()},
                                              parts_.group,
                                              attempt.job.trace()});
  ProgressSink progress(name, model, parts_.estimator, parts_.progress);
  std::vector<TelemetrySink*> sinks = {&events, attempt.report.get(), &progress};
  for (const auto& sink : extra) sinks.push_back(sink.get());
  Recorder recorder(parts_.clock, engine_.Monitor(), std::move(sinks));

  recorder.RecordPast(StageKind::kQueueWait, attempt.queued_since, attempt.waited);
  DescribeSurroundings(model, *attempt.report);
  const std::unique_ptr<DeviceTimeline> timeline = engine_.Monitor().StartTimeline();
  DeviceShares shares(engine_.Monitor());
  Span total = recorder.StartSpan(StageKind::kTotalExecution);
  absl::StatusOr<std::vector<wan::v1::Artifact>> result =
      Execute(attempt, events, progress, recorder);
  total.Finish(result.status()).IgnoreError();
  const std::vector<wan::v1::DeviceShare> shared = shares.Finish();
  attempt.report->Annotate([&](wan::v1::JobReport& report) {
    report.mutable_devices()->Assign(shared.begin(), shared.end());
  });
  if (timeline != nullptr) {
    const std::vector<TimelinePoint> points = timeline->Points();
    attempt.report->Annotate(
        [&](wan::v1::JobReport& report) { *report.mutable_timeline() = ToProto(points); });
  }
  return result;
}

void JobRunner::DescribeSurroundings(const std::string& model, ReportSink& sink) const {
  wan::v1::SystemDescription system = ToProto(engine_.Device().system);
  system.set_server_version(parts_.server_version);
  system.set_server_revision(parts_.server_revision);
  const std::optional<wan::v1::StageReport> load = parts_.models.LoadReport(model, parts_.group);
  sink.Annotate([&](wan::v1::JobReport& report) {
    *report.mutable_system() = std::move(system);
    if (load.has_value()) *report.mutable_model_load() = *load;
  });
}

absl::Status JobRunner::Public(const wan::v1::Job& job, const absl::Status& status) const {
  const ModelDescription model = DescriptionOf(job);
  std::vector<std::string> folders = {parts_.data_dir};
  // The deepest first, so that nothing of a path is left but the file's name.
  for (const ModelFile& file : model.files) {
    folders.push_back(std::filesystem::path(file.path).parent_path().string());
  }
  folders.push_back(model.path);
  std::sort(folders.begin(), folders.end(),
            [](const std::string& a, const std::string& b) { return a.size() > b.size(); });
  absl::Status told = WithoutFolders(status, folders);
  if (told.message() == status.message()) return told;
  const absl::Status whole(status.code(), absl::StrCat(job.name(), ": ", status.message()));
  for (StateListener* listener : parts_.listeners) listener->OnProblem(whole);
  return told;
}

ModelDescription JobRunner::DescriptionOf(const wan::v1::Job& job) const {
  for (ModelDescription& model : engine_.Models()) {
    if (model.name == job.request().model()) return std::move(model);
  }
  return {};  // the plan says so
}

absl::StatusOr<std::vector<wan::v1::Artifact>> JobRunner::Execute(const Attempt& attempt,
                                                                  EventSink& events,
                                                                  ProgressSink& progress,
                                                                  Recorder& recorder) {
  const wan::v1::Job& job = attempt.job;
  std::shared_ptr<const std::string> image;
  if (!job.image_sha256().empty()) {
    absl::StatusOr<std::string> stored = parts_.store.Image(job.name());
    if (!stored.ok()) return stored.status();
    image = std::make_shared<const std::string>(*std::move(stored));
  }
  const size_t image_bytes = image == nullptr ? 0 : image->size();
  GenerationRequest request = ToEngineRequest(job.request(), std::move(image));
  // The stored request has the size that the first plan resolved; do not resolve it again.
  request.size_is_exact = true;
  const absl::StatusOr<GenerationPlan> plan = CallEngine([&] { return engine_.Plan(request); });
  if (!plan.ok()) return plan.status();
  events.SetPlan(plan->stages);
  for (const StagePlan& stage : plan->stages) {
    if (!stage.flops.has_value()) continue;
    recorder.Record({"planned_flops", *stage.flops, {{"stage", NameOf(stage.stage)}}});
  }
  progress.SetPlan(plan->stages);

  const absl::StatusOr<std::vector<OutputFile>> outputs =
      parts_.artifacts.Stage(job.name(), job.attempt(), plan->request.outputs);
  if (!outputs.ok()) return outputs.status();
  wan::v1::Provenance provenance = ProvenanceOf(*plan, engine_.Device());
  provenance.set_server_version(parts_.server_version);
  parts_.table.Annotate(job.name(), [&](wan::v1::Job& row) {
    *row.mutable_provenance() = provenance;
    row.clear_omissions();
  });
  const ModelDescription model = DescriptionOf(job);
  attempt.report->Annotate([&](wan::v1::JobReport& report) {
    *report.mutable_plan() = ReportOf(*plan, model);
    if (image_bytes > 0) report.set_image_bytes(image_bytes);
  });
  JobChange read_from{.job = job.name()};
  read_from.files = JobFilesOf(model.files);
  parts_.log.Append(std::move(read_from));
  AttemptObserver observer(parts_.log, events, attempt);
  JobSavepoints savepoints({.store = parts_.savepoints,
                            .clock = parts_.clock,
                            .job = job.name(),
                            .identity = SavepointIdentity(job, provenance, model),
                            .interval = parts_.savepoint_interval,
                            .will_run_again = [&] { return parts_.table.WillRunAgain(job.name()); },
                            .on_written =
                                [&](int steps_done, double seconds) {
                                  for (StateListener* listener : parts_.listeners) {
                                    listener->OnSavepoint(job, steps_done, seconds);
                                  }
                                },
                            .on_problem =
                                [&](const absl::Status& problem) {
                                  for (StateListener* listener : parts_.listeners) {
                                    listener->OnProblem(problem);
                                  }
                                }});
  absl::Status generated = CallEngine([&] {
    return engine_.Generate(*plan, *outputs, recorder, observer, attempt.stop, &savepoints);
  });
  std::vector<wan::v1::Omission> omissions;
  for (const Omission& omission : observer.omissions()) {
    omissions.push_back(ToProto(Omission{omission.output, Public(job, omission.status)}));
  }
  parts_.table.Annotate(job.name(), [&](wan::v1::Job& row) {
    row.mutable_omissions()->Assign(omissions.begin(), omissions.end());
  });
  if (!generated.ok()) return generated;
  return parts_.artifacts.Publish(job.name(), job.attempt(),
                                  WithoutLost(*outputs, observer.omissions()));
}

}  // namespace wan::server
