#include "server/jobs/model_operations.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <set>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "engine/api/errors.h"
#include "server/conversion/errors.h"
#include "server/conversion/names.h"
#include "server/jobs/engine_call.h"
#include "server/jobs/job_sinks.h"
#include "server/jobs/model_errors.h"
#include "server/jobs/model_spec.h"

namespace wan::server {
namespace {

// Counts the groups in which a task has not ended, and keeps the first error.
class SharedTask {
 public:
  explicit SharedTask(size_t groups) : left_(groups) {}

  // Call End when the task has ended in a group with `status`. After the last group, returns the
  // outcome of all groups; before that, nothing.
  std::optional<absl::Status> End(const absl::Status& status) {
    absl::MutexLock lock(&mutex_);
    error_.Update(status);
    return --left_ > 0 ? std::nullopt : std::optional(error_);
  }

 private:
  absl::Mutex mutex_;
  size_t left_ ABSL_GUARDED_BY(mutex_);
  absl::Status error_ ABSL_GUARDED_BY(mutex_);
};

// Calls `done` with the model, or with the error if `status` is one.
void Tell(const ModelOperations::Done& done, const absl::Status& status,
          const wan::v1::Model& model) {
  if (status.ok()) {
    done(model);
  } else {
    done(status);
  }
}

// Replaces the engine's CANCELLED by SERVER_STOPPING if Stop has cancelled the task.
absl::Status OrStopping(absl::Status status, const std::stop_token& stop) {
  return absl::IsCancelled(status) && stop.stop_requested() ? ServerStoppingError() : status;
}

}  // namespace

void ModelOperations::Load(ModelSpec spec, const Done& done, const LoraEdits& edits) {
  spec.name = std::string(BareModelName(spec.name));
  std::vector<int> begin;
  const ModelTable::Answer answer =
      table_.BeginLoad({spec, edits, parts_.roots, parts_.folders}, done, &begin);
  if (answer.has_value()) done(*answer);
  PostLoad(spec, begin);
}

absl::StatusOr<wan::v1::Model> ModelOperations::BeginLoad(ModelSpec spec, const LoraEdits& edits) {
  spec.name = std::string(BareModelName(spec.name));
  std::vector<int> begin;
  const ModelTable::Answer answer =
      table_.BeginLoad({spec, edits, parts_.roots, parts_.folders}, nullptr, &begin);
  if (answer.has_value()) return *answer;
  absl::StatusOr<wan::v1::Model> model =
      table_.Get(spec.name);  // read the model before an executor can end the load
  PostLoad(spec, begin);
  return model;
}

void ModelOperations::LoadMissing(const std::string& name, int group) {
  const std::optional<ModelSpec> missing = table_.BeginMissing(name, group);
  if (missing.has_value()) PostLoad(*missing, {group});
}

void ModelOperations::PostLoad(const ModelSpec& spec, const std::vector<int>& groups) {
  for (const int group : groups) {
    parts_.groups.executor(group).Post(
        {[this, spec, group] {
           const absl::Time begun = parts_.clock.Steady().Now();
           const absl::Status status = RunLoad(spec, group);
           FinishLoad(spec.name, group, status, parts_.clock.Steady().Now() - begun);
         },
         [this, spec, group] {
           FinishLoad(spec.name, group, ServerStoppingError(), absl::ZeroDuration());
         }});
  }
}

absl::Status ModelOperations::RunLoad(const ModelSpec& asked, int group) {
  Engine& engine = parts_.groups.engine(group);
  ModelSpec wanted = asked;
  std::set<std::string> trusted = table_.ConfiguredPaths(asked.name);
  if (const auto resident = table_.ReplacedPath(asked.name, group); resident.has_value()) {
    // Keep the path that was loaded, even if links in the configured path lead elsewhere by now.
    wanted.path = *resident;
    trusted.insert(*resident);
  }
  parts_.digests.Pause();
  const absl::Cleanup resume = [this] { parts_.digests.Resume(); };
  const absl::StatusOr<ModelSpec> resolved = parts_.roots.Resolve(wanted, trusted);
  if (!resolved.ok()) return resolved.status();
  const ModelSpec& spec = *resolved;
  const auto sinks = MakeSinks(parts_.sinks, {.model = spec.name, .job = "", .group = group});
  std::vector<TelemetrySink*> views;
  views.reserve(sinks.size());
  for (const auto& sink : sinks) views.push_back(sink.get());
  SpanReportSink initialization(StageKind::kModelInitialization);
  views.push_back(&initialization);
  Recorder recorder(parts_.clock, engine.Monitor(), std::move(views));
  // Do not stop a load when its caller has gone: other callers may wait for the load, and a client
  // with a short timeout could otherwise never load a large model.
  const std::stop_token stop = stop_token();
  absl::Status loaded = CallEngine([&] { return engine.LoadModel(spec, recorder, stop); });
  if (!loaded.ok()) return OrStopping(loaded, stop);
  table_.NoteLoadReport(spec.name, group, initialization.report());
  if (!parts_.warm_up_on_load || IsWarm(spec.name, group)) return loaded;
  return WarmUpLoaded(spec.name, group, stop);
}

bool ModelOperations::IsWarm(const std::string& name, int group) const {
  const std::vector<ModelDescription> models = parts_.groups.engine(group).Models();
  return std::any_of(models.begin(), models.end(), [&](const ModelDescription& model) {
    return model.name == name && !model.warm_shapes.empty();
  });
}

absl::Status ModelOperations::WarmUpLoaded(const std::string& name, int group,
                                           const std::stop_token& stop) {
  Engine& engine = parts_.groups.engine(group);
  absl::Status warm = CallEngine([&] { return engine.Warmup(name, parts_.warm_up_shapes, stop); });
  if (warm.ok() || IsDeviceLost(warm)) return warm;
  // Unload the model, because a model that cannot run must not look ready or occupy memory. Return
  // the error of the warm-up, not an error of the unload.
  CallEngine([&] { return engine.UnloadModel(name); }).IgnoreError();
  warm = OrStopping(warm, stop);
  if (ReasonOf(warm) == kReasonServerStopping) return warm;
  return WarmupFailedError(warm);
}

void ModelOperations::FinishLoad(const std::string& name, int group, const absl::Status& ended,
                                 absl::Duration taken) {
  const DeviceGroups& groups = parts_.groups;
  Hear(ended, group);
  const bool stopping = ReasonOf(ended) == kReasonServerStopping;
  // Whether the task was dropped because its group's device was lost.
  const bool left = stopping && !groups.Serves(group) && groups.serving() > 0;
  const absl::Status status = left ? groups.ProblemOf(group) : ended;
  const ModelTable::LoadEnd end = table_.EndLoad(name, group, status, taken);
  if (status.ok()) WantDigests(name, group);
  if (!status.ok() && !stopping && (groups.size() > 1 || end.kept)) {
    // Tell the listeners, because the model's state may not show the failure: the model may still
    // be READY in another group, or in this group with its former LoRAs.
    const absl::Status problem(
        status.code(),
        absl::StrCat("model '", name, "' could not be loaded in group ", group, " (",
                     groups.device(group).device, ")",
                     end.kept ? ", and keeps the LoRAs that it had" : "", ": ", status.message()));
    for (StateListener* listener : parts_.listeners) listener->OnProblem(problem);
  }
  if (end.stranded) {
    CallEngine([&] { return parts_.groups.engine(group).UnloadModel(name); }).IgnoreError();
  }
  PostLoad(end.undo, end.undo_groups);
  for (const Done& done : end.waiters) Tell(done, end.outcome, end.model);
  LoadInterrupted(name);
}

void ModelOperations::WantDigests(const std::string& name, int group) const {
  for (const ModelDescription& model : parts_.groups.engine(group).Models()) {
    if (model.name == name) parts_.digests.Want(model.files);
  }
}

void ModelOperations::Unload(std::string_view name, const Done& done) {
  const std::string bare(BareModelName(name));
  std::vector<int> resident;
  const ModelTable::Answer answer = table_.BeginUnload(bare, &resident);
  if (answer.has_value()) return done(*answer);
  const auto shared = std::make_shared<SharedTask>(resident.size());
  for (const int group : resident) {
    const auto finish = [this, bare, done, group, shared](const absl::Status& status) {
      table_.EndUnload(bare, group, status);
      const std::optional<absl::Status> outcome = shared->End(status);
      if (outcome.has_value()) Tell(done, *outcome, table_.SetUnloaded(bare));
    };
    parts_.groups.executor(group).Post(
        {[this, bare, group, finish] {
           finish(CallEngine([&] { return parts_.groups.engine(group).UnloadModel(bare); }));
         },
         [finish] { finish(ServerStoppingError()); }});
  }
}

void ModelOperations::Warmup(std::string_view name, std::vector<VideoShape> shapes,
                             const Done& done, std::stop_token caller) {
  const absl::Status posted =
      PostWarmup(std::string(BareModelName(name)), std::move(shapes), done, std::move(caller));
  if (!posted.ok()) done(posted);
}

absl::StatusOr<wan::v1::Model> ModelOperations::BeginWarmup(std::string_view name,
                                                            std::vector<VideoShape> shapes) {
  const std::string bare(BareModelName(name));
  absl::Status posted = PostWarmup(bare, std::move(shapes), nullptr, {});
  if (!posted.ok()) return posted;
  return table_.Get(bare);
}

absl::Status ModelOperations::PostWarmup(const std::string& name, std::vector<VideoShape> shapes,
                                         const Done& done, std::stop_token caller) {
  if (shapes.size() > kMaxWarmupShapes) {
    return InvalidFields(
        {{"shapes",
          absl::StrCat("has ", shapes.size(), " entries; must have at most ", kMaxWarmupShapes)}});
  }
  const absl::StatusOr<std::vector<int>> ready = table_.CheckReady(name);
  if (!ready.ok()) return ready.status();
  for (const int group : *ready) {
    absl::Status fits =
        CallEngine([&] { return parts_.groups.engine(group).CheckWarmup(name, shapes); });
    if (!fits.ok()) return fits;
  }
  const std::string operation = table_.BeginWarmup(name);
  const auto shared = std::make_shared<SharedTask>(ready->size());
  for (const int group : *ready) {
    const auto finish = [this, name, operation, done, group, shared](const absl::Status& status) {
      Hear(status, group);
      const std::optional<absl::Status> outcome = shared->End(status);
      if (!outcome.has_value()) return;
      const wan::v1::Model model = table_.EndWarmup(name, operation, *outcome);
      if (done != nullptr) Tell(done, *outcome, model);
    };
    parts_.groups.executor(group).Post({[this, name, group, shapes, finish, caller] {
                                          finish(RunWarmup(name, group, shapes, caller));
                                        },
                                        [finish] { finish(ServerStoppingError()); }});
  }
  return absl::OkStatus();
}

absl::Status ModelOperations::RunWarmup(const std::string& name, int group,
                                        const std::vector<VideoShape>& shapes,
                                        const std::stop_token& caller) {
  std::stop_source stop;  // Stop() or the task's caller requests this stop, whichever comes first
  const auto end = [&stop] { stop.request_stop(); };
  const std::stop_callback on_caller(caller, end);
  const std::stop_token stopping = stop_token();
  const std::stop_callback on_server(stopping, end);
  if (stop.stop_requested()) {
    return OrStopping(absl::CancelledError("the caller went away before the warm-up began"),
                      stopping);
  }
  Engine& engine = parts_.groups.engine(group);
  absl::Status warm = OrStopping(
      CallEngine([&] { return engine.Warmup(name, shapes, stop.get_token()); }), stopping);
  if (IsNotFinite(warm)) Discard(name, group, WarmupFailedError(warm));
  return warm;
}

void ModelOperations::Discard(const std::string& name, int group, const absl::Status& error) {
  if (!table_.SetFailed(name, group, error))
    return;  // somebody has asked to unload the model, which frees its memory
  // Unload here and not in a new task, so that the next task, which may be a load, finds the name
  // free.
  CallEngine([&] { return parts_.groups.engine(group).UnloadModel(name); }).IgnoreError();
}

void ModelOperations::Hear(const absl::Status& status, int group) const {
  if (IsDeviceLost(status)) parts_.on_device_lost(group, status);
}

std::stop_token ModelOperations::stop_token() const {
  absl::MutexLock lock(&mutex_);
  return stopping_.get_token();
}

void ModelOperations::Stop() {
  std::stop_source stopping(std::nostopstate);
  {
    absl::MutexLock lock(&mutex_);
    stopping = stopping_;
  }
  stopping.request_stop();  // call request_stop outside the lock, because it runs callbacks of the
                            // engine
}

void ModelOperations::Resume() {
  {
    absl::MutexLock lock(&mutex_);
    if (!stopping_.stop_requested()) return;
    stopping_ = std::stop_source();
  }
  for (const std::string& name : table_.Names()) LoadInterrupted(name);
}

void ModelOperations::LoadInterrupted(const std::string& name) {
  if (stop_token().stop_requested()) return;
  std::optional<ModelSpec> interrupted = table_.TakeInterrupted(name);
  if (!interrupted.has_value()) return;
  // No caller waits for this load; the listeners are told of its end.
  Load(*std::move(interrupted), [](const absl::StatusOr<wan::v1::Model>&) {});
}

}  // namespace wan::server
