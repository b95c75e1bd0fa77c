#include "server/jobs/attempt_run.h"

#include <google/protobuf/util/message_differencer.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/api/errors.h"
#include "engine/api/storage_error.h"
#include "server/conversion/convert.h"
#include "server/conversion/job_inputs.h"
#include "server/conversion/public_text.h"
#include "server/jobs/attempt_telemetry.h"
#include "server/jobs/engine_call.h"
#include "server/jobs/job_savepoints.h"
#include "server/jobs/savepoint_origin.h"

namespace wan::server {
namespace {

using google::protobuf::util::MessageDifferencer;

// Returns the engine's description of the job's model; empty if the engine does not have the model.
ModelDescription DescriptionOf(const Engine& engine, const wan::v1::Job& job) {
  for (ModelDescription& model : engine.Models()) {
    if (model.name == job.request().model()) return std::move(model);
  }
  return {};  // an empty description: planning the job reports the missing model
}

class AttemptRun final : public GenerationObserver {
 public:
  AttemptRun(const RunnerParts& parts, const Attempt& attempt)
      : parts_(parts),
        engine_(parts.engine()),
        attempt_(attempt),
        job_(attempt.job),
        telemetry_(parts, attempt) {}

  absl::StatusOr<std::vector<wan::v1::Artifact>> Run() {
    Span total = telemetry_.recorder().StartSpan(StageKind::kTotalExecution);
    absl::StatusOr<std::vector<wan::v1::Artifact>> artifacts = RunParts();
    goes_on_ = IsDeviceLost(artifacts.status()) || IsStorageError(artifacts.status());
    savepoints_.reset();  // wait until the latest savepoint is on the disk
    total.Finish(artifacts.status()).IgnoreError();
    telemetry_.Finish();
    return artifacts;
  }

 private:
  absl::StatusOr<std::vector<wan::v1::Artifact>> RunParts() {
    if (absl::Status planned = Plan(); !planned.ok()) return planned;
    if (absl::Status staged = Stage(); !staged.ok()) return staged;
    if (absl::Status generated = Generate(); !generated.ok()) return generated;
    return Publish();
  }
  absl::Status Plan();
  // Sets the plan and the provenance that it leads to.
  absl::Status PlanAs(const GenerationRequest& request);
  // Creates the attempt's folder, and records the model files and provenance in the job's row and
  // report.
  absl::Status Stage();
  absl::Status Generate();
  absl::StatusOr<std::vector<wan::v1::Artifact>> Publish();

  void OnOmission(const Omission& omission) override;
  void OnResumed(int steps_done) override { telemetry_.Resume(steps_done); }
  void OnPreview(const Preview& preview) override;
  void OnVideoPart(const VideoPart& part) override;

  JobSavepoints::Parts SavepointParts();
  // Records in the job's row which optional outputs failed although the job completes.
  void NoteOmissions();
  // Returns the outputs that were written completely, and removes the files of all others so that
  // they are not published.
  std::vector<OutputFile> WholeOutputs() const;

  const RunnerParts& parts_;
  Engine& engine_;
  const Attempt& attempt_;
  const wan::v1::Job& job_;
  AttemptTelemetry telemetry_;
  // AttemptRun::Plan sets the plan.
  std::optional<GenerationPlan> plan_;
  wan::v1::Provenance provenance_;
  // AttemptRun::Stage sets the outputs.
  std::vector<OutputFile> outputs_;
  ModelDescription model_;
  // AttemptRun::Generate sets the omissions.
  std::vector<Omission> omissions_;
  // Whether the attempt failed in a way after which the job runs again.
  bool goes_on_ = false;
  std::optional<JobSavepoints> savepoints_;  // declared last: its thread uses the members above
};

absl::Status AttemptRun::Plan() {
  absl::StatusOr<JobInputs> inputs = parts_.store.Inputs(job_.name());
  if (!inputs.ok()) return inputs.status();
  absl::Status complete = parts_.input_links.Complete(job_, *inputs);
  if (!complete.ok()) return complete;
  if (const std::string_view missing = MissingInput(job_, *inputs); !missing.empty()) {
    return absl::DataLossError(absl::StrCat("the stored ", std::string(missing),
                                            " of the request is missing; create the job again"));
  }
  GenerationRequest request = RequestOf(job_, *std::move(inputs));
  if (job_.attempt() > 1) {
    absl::Status fetched = parts_.savepoints.Fetch(job_.name(), attempt_.stop);
    if (!fetched.ok() && !absl::IsNotFound(fetched)) return fetched;
  }
  // Whether both forwards of a step fit as one batch depends on the memory that is free now, and
  // it decides bits. So continue with the choice of the attempt that made the savepoint.
  const std::optional<SavepointOrigin> kept =
      job_.attempt() > 1 ? parts_.savepoints.OriginOf(job_.name()) : std::nullopt;
  if (kept.has_value()) request.batched_guidance = kept->provenance.batched_guidance();
  if (absl::Status planned = PlanAs(request); !planned.ok()) return planned;
  const bool continues = kept.has_value() && MessageDifferencer::Equals(
                                                 kept->provenance, LatentsProvenance(provenance_));
  if (kept.has_value() && !continues) {
    // The savepoint will not be used, so its choice does not bind.
    request.batched_guidance.reset();
    if (absl::Status planned = PlanAs(request); !planned.ok()) return planned;
  }
  telemetry_.SetPlan(*plan_);
  return absl::OkStatus();
}

absl::Status AttemptRun::PlanAs(const GenerationRequest& request) {
  absl::StatusOr<GenerationPlan> plan = CallEngine([&] { return engine_.Plan(request); });
  if (!plan.ok()) return plan.status();
  plan_ = *std::move(plan);
  provenance_ = ProvenanceOf(*plan_, engine_.Device());
  provenance_.set_server_version(parts_.server_version);
  return absl::OkStatus();
}

absl::Status AttemptRun::Stage() {
  absl::StatusOr<std::vector<OutputFile>> outputs =
      parts_.artifacts.Stage(job_.name(), job_.attempt(), plan_->request.outputs);
  if (!outputs.ok()) return outputs.status();
  outputs_ = *std::move(outputs);
  model_ = DescriptionOf(engine_, job_);
  parts_.states.NoteProvenance(job_.name(), provenance_);
  parts_.receipt_files.Note(job_.name(), model_.files);
  telemetry_.DescribePlan(*plan_, model_);
  return absl::OkStatus();
}

absl::Status AttemptRun::Generate() {
  savepoints_.emplace(SavepointParts());
  absl::Status generated = CallEngine([&] {
    return engine_.Generate(*plan_, outputs_, telemetry_.recorder(), *this, attempt_.stop,
                            &*savepoints_);
  });
  NoteOmissions();
  return generated;
}

absl::StatusOr<std::vector<wan::v1::Artifact>> AttemptRun::Publish() {
  return parts_.artifacts.Publish(job_.name(), job_.attempt(), WholeOutputs(), attempt_.stop);
}

void AttemptRun::OnOmission(const Omission& omission) {
  omissions_.push_back(omission);
  if (omission.output == OutputKind::kMp4) parts_.live_videos.End(job_.name(), /*complete=*/false);
}

void AttemptRun::OnVideoPart(const VideoPart& part) {
  const absl::Status added = parts_.live_videos.Add(job_.name(), part);
  if (added.ok()) return;
  for (StateListener* listener : parts_.listeners) listener->OnProblem(added);
}

void AttemptRun::OnPreview(const Preview& preview) {
  wan::v1::Event event;
  event.set_attempt(job_.attempt());
  wan::v1::Event::Preview& shown = *event.mutable_preview();
  shown.set_step(preview.step);
  if (!preview.jpegs.empty()) shown.set_jpeg(preview.jpegs.front());
  for (size_t i = 1; i < preview.jpegs.size(); ++i) shown.add_later_jpegs(preview.jpegs[i]);
  parts_.ledger.Preview(job_.name(), std::move(event));
}

JobSavepoints::Parts AttemptRun::SavepointParts() {
  const bool had_steps =
      std::any_of(job_.lost_attempts().begin(), job_.lost_attempts().end(),
                  [](const wan::v1::LostAttempt& lost) { return lost.steps_kept() > 0; });
  return {.store = parts_.savepoints,
          .clock = parts_.clock,
          .digests = parts_.digests,
          .job = job_.name(),
          .attempt = job_.attempt(),
          .origin = OriginOf(
              job_, {provenance_, ScheduleDigest(*plan_), engine_.Device().system.cpu_name}, model_,
              parts_.digests),
          .files = FilesUsedBy(job_, model_),
          .required = job_.request().resume() == wan::v1::RESUME_REQUIRE,
          .had_steps = had_steps,
          .stop = attempt_.stop,
          .interval = parts_.savepoint_interval,
          .will_run_again = [this] { return goes_on_ || parts_.states.WillRunAgain(job_.name()); },
          .on_written =
              [this](int steps_done, double seconds) {
                for (StateListener* listener : parts_.listeners) {
                  listener->OnSavepoint(job_, steps_done, seconds);
                }
              },
          .on_problem =
              [this](const absl::Status& problem) {
                for (StateListener* listener : parts_.listeners) listener->OnProblem(problem);
              }};
}

void AttemptRun::NoteOmissions() {
  std::vector<wan::v1::Omission> told;
  for (const Omission& omission : omissions_) {
    told.push_back(ToProto(Omission{omission.output, PublicError(parts_, job_, omission.status)}));
  }
  parts_.states.Annotate(job_.name(), [&](wan::v1::Job& row) {
    row.mutable_omissions()->Assign(told.begin(), told.end());
  });
}

std::vector<OutputFile> AttemptRun::WholeOutputs() const {
  std::vector<OutputFile> whole;
  for (const OutputFile& output : outputs_) {
    const bool lost =
        std::any_of(omissions_.begin(), omissions_.end(),
                    [&](const Omission& omission) { return omission.output == output.kind; });
    if (lost) {
      // Ignore a failed removal: the partial file is then published like a complete one.
      std::error_code ignored;
      std::filesystem::remove(output.path, ignored);
    } else {
      whole.push_back(output);
    }
  }
  return whole;
}

}  // namespace

absl::StatusOr<std::vector<wan::v1::Artifact>> RunAttempt(const RunnerParts& parts,
                                                          const Attempt& attempt) {
  return AttemptRun(parts, attempt).Run();
}

absl::Status PublicError(const RunnerParts& parts, const wan::v1::Job& job,
                         const absl::Status& status) {
  const ModelDescription model = DescriptionOf(parts.engine(), job);
  std::vector<std::string> folders = {parts.data_dir};
  // Remove the longest folder names first, so that only the file names remain of paths.
  for (const ModelFile& file : model.files) {
    folders.push_back(std::filesystem::path(file.path).parent_path().string());
  }
  folders.push_back(model.path);
  std::sort(folders.begin(), folders.end(),
            [](const std::string& a, const std::string& b) { return a.size() > b.size(); });
  absl::Status told = WithoutFolders(status, folders);
  if (told.message() == status.message()) return told;
  const absl::Status whole(status.code(), absl::StrCat(job.name(), ": ", status.message()));
  for (StateListener* listener : parts.listeners) listener->OnProblem(whole);
  return told;
}

}  // namespace wan::server
