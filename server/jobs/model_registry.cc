#include "server/jobs/model_registry.h"

#include <algorithm>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "engine/api/errors.h"
#include "server/conversion/convert.h"
#include "server/conversion/errors.h"
#include "server/conversion/names.h"
#include "server/conversion/page_token.h"
#include "server/jobs/engine_call.h"
#include "server/jobs/job_sinks.h"
#include "server/jobs/model_spec.h"

namespace wan::server {
namespace {

constexpr absl::Duration kLoadingRetryDelay = absl::Seconds(5);
constexpr int kDefaultPageSize = 50;
constexpr int kMaxPageSize = 1000;
// gRPC's clients take 4 MiB by default.
constexpr size_t kMaxPageBytes = size_t{3} << 20;
constexpr char kListed[] = "ListModels";
// Of those that have ended.
constexpr int kKeptOperations = 8;

std::string NamesOf(const std::vector<LoraSource>& loras) {
  if (loras.empty()) return "no LoRAs";
  return absl::StrCat("the LoRAs ",
                      absl::StrJoin(loras, ", ", [](auto* out, const LoraSource& lora) {
                        out->append(lora.name);
                      }));
}

absl::Status ModelNotFound(const std::string& name) {
  return WithReason(absl::NotFoundError(absl::StrCat("there is no model '", name, "'")),
                    kReasonModelNotFound);
}

absl::Status Refused(std::string_view reason, const std::string& message) {
  return WithReason(absl::FailedPreconditionError(message), reason);
}

absl::Status NotReady(const std::string& name, wan::v1::ModelState state,
                      const absl::Status& error) {
  if (state == wan::v1::MODEL_STATE_LOADING) {
    return Refused(kReasonModelLoading,
                   absl::StrCat("model '", name, "' is being loaded; try again when it is ready"));
  }
  return Refused(
      kReasonModelNotReady,
      error.ok() ? absl::StrCat("model '", name, "' is not loaded; load it with LoadModel first")
                 : absl::StrCat("model '", name, "' could not be loaded: ", error.message()));
}

// Calls `done` with the model, or with the error if the task failed.
void Tell(const ModelRegistry::Done& done, const absl::Status& status,
          const wan::v1::Model& model) {
  if (status.ok()) {
    done(model);
  } else {
    done(status);
  }
}

}  // namespace

ModelRegistry::ModelRegistry(Engine& engine, Executor& executor, Clock& clock,
                             ModelRegistryOptions options)
    : engine_(engine), executor_(executor), clock_(clock), options_(std::move(options)) {}

absl::Status ModelRegistry::Add(const ModelSpec& spec) {
  absl::Status valid = CheckSpec(spec);
  if (!valid.ok()) return valid;
  absl::MutexLock lock(&mutex_);
  Entry entry;
  entry.configured = spec;
  entry.path = spec.path;
  entry.loras = spec.loras;
  if (!entries_.emplace(spec.name, std::move(entry)).second) {
    return absl::AlreadyExistsError(absl::StrCat("model '", spec.name,
                                                 "' is named twice; each model needs a "
                                                 "name of its own"));
  }
  return absl::OkStatus();
}

void ModelRegistry::Load(ModelSpec spec, const Done& done) {
  spec.name = std::string(BareModelName(spec.name));
  bool begin = false;
  const Answer answer = JoinLoad(spec, done, &begin);
  if (answer.has_value()) done(*answer);
  if (begin) PostLoad(spec);
}

absl::StatusOr<wan::v1::Model> ModelRegistry::BeginLoad(ModelSpec spec) {
  spec.name = std::string(BareModelName(spec.name));
  bool begin = false;
  const Answer answer = JoinLoad(spec, nullptr, &begin);
  if (answer.has_value()) return *answer;
  absl::StatusOr<wan::v1::Model> model = Get(spec.name);  // before the executor can end it
  if (begin) PostLoad(spec);
  return model;
}

void ModelRegistry::PostLoad(const ModelSpec& spec) {
  executor_.Post(
      {[this, spec] {
         const absl::Time begun = clock_.Steady().Now();
         const absl::Status status = RunLoad(spec);
         FinishLoad(spec.name, status, clock_.Steady().Now() - begun);
       },
       [this, spec] { FinishLoad(spec.name, ServerStoppingError(), absl::ZeroDuration()); }});
}

void ModelRegistry::Hear(const absl::Status& status) const {
  if (IsDeviceLost(status)) options_.on_device_lost(status);
}

ModelRegistry::Answer ModelRegistry::JoinLoad(ModelSpec& spec, const Done& done, bool* begin) {
  absl::MutexLock lock(&mutex_);
  const auto found = entries_.find(spec.name);
  if (spec.path.empty()) {
    if (found == entries_.end()) return ModelNotFound(spec.name);
    spec.path = found->second.path;
    if (spec.loras.empty()) spec.loras = found->second.loras;
  }
  absl::Status valid = CheckSpec(spec);
  if (!valid.ok()) return valid;
  if (!IsConfigured(spec)) {
    const std::vector<FieldViolation> outside = options_.roots.Check(spec);
    if (!outside.empty()) return InvalidFields(outside);
  }
  Entry& entry = entries_[spec.name];
  const bool same = entry.path == spec.path && entry.loras == spec.loras;
  switch (entry.state) {
    case wan::v1::MODEL_STATE_READY:
      if (same) return Describe(spec.name, entry);
      return Refused(kReasonModelLoaded,
                     absl::StrCat("model '", spec.name, "' is loaded from ", entry.path, " with ",
                                  NamesOf(entry.loras), "; unload it first"));
    case wan::v1::MODEL_STATE_LOADING:
      if (!same) {
        return Refused(
            kReasonModelLoading,
            absl::StrCat("model '", spec.name, "' is being loaded from ", entry.path, " with ",
                         NamesOf(entry.loras), "; wait until it is loaded, then unload it first"));
      }
      break;
    default:
      entry.path = spec.path;
      entry.loras = spec.loras;
      entry.load_operation = BeginOperation(spec.name, entry, wan::v1::ModelOperation::KIND_LOAD);
      SetState(spec.name, entry, wan::v1::MODEL_STATE_LOADING, absl::OkStatus());
      *begin = true;
  }
  if (done != nullptr) entry.load_waiters.push_back(done);
  return std::nullopt;
}

bool ModelRegistry::IsConfigured(const ModelSpec& spec) const {
  const auto found = entries_.find(spec.name);
  return found != entries_.end() && found->second.configured.has_value() &&
         found->second.configured->path == spec.path &&
         found->second.configured->loras == spec.loras;
}

void ModelRegistry::SetIdle(const std::string& name) {
  if (entries_[name].configured.has_value()) return;
  idle_.remove(name);
  idle_.push_back(name);
  while (idle_.size() > kMaxIdleModels) {
    const std::string oldest = std::move(idle_.front());
    idle_.pop_front();
    const auto found = entries_.find(oldest);
    if (found == entries_.end() || found->second.state == wan::v1::MODEL_STATE_READY ||
        found->second.state == wan::v1::MODEL_STATE_LOADING) {
      continue;
    }
    entries_.erase(found);
    TellWatchers(oldest);
  }
}

absl::Status ModelRegistry::RunLoad(const ModelSpec& asked) {
  bool configured = false;
  {
    absl::MutexLock lock(&mutex_);
    configured = IsConfigured(asked);
  }
  if (options_.digests != nullptr) options_.digests->Pause();
  const absl::Cleanup resume = [this] {
    if (options_.digests != nullptr) options_.digests->Resume();
  };
  absl::StatusOr<ModelSpec> resolved = asked;
  if (!configured) resolved = options_.roots.Resolve(asked);
  if (!resolved.ok()) return resolved.status();
  const ModelSpec& spec = *resolved;
  const auto sinks = MakeSinks(options_.sinks, {spec.name, "", 0});
  std::vector<TelemetrySink*> views;
  views.reserve(sinks.size());
  for (const auto& sink : sinks) views.push_back(sink.get());
  SpanReportSink initialization(StageKind::kModelInitialization);
  views.push_back(&initialization);
  Recorder recorder(clock_, engine_.Monitor(), std::move(views));
  // A load goes on when its caller is gone: others may wait for it, and a client with a short
  // timeout could never load a large model otherwise.
  const std::stop_token stop = stopping_.get_token();
  absl::Status loaded = CallEngine([&] { return engine_.LoadModel(spec, recorder, stop); });
  if (!loaded.ok()) return OrStopping(loaded);
  {
    absl::MutexLock lock(&mutex_);
    entries_[spec.name].load_report = initialization.report();
  }
  if (!options_.warm_up_on_load) return loaded;
  absl::Status warm =
      CallEngine([&] { return engine_.Warmup(spec.name, options_.warm_up_shapes, stop); });
  if (warm.ok()) return warm;
  if (IsDeviceLost(warm)) return warm;
  // A model that cannot run must not look ready or hold memory. Keep the warm-up's error, which
  // says why, rather than one of the unloading.
  CallEngine([&] { return engine_.UnloadModel(spec.name); }).IgnoreError();
  warm = OrStopping(warm);
  if (ReasonOf(warm) == kReasonServerStopping) return warm;
  return absl::Status(warm.code(), absl::StrCat("the warm-up failed: ", warm.message()));
}

absl::Status ModelRegistry::OrStopping(absl::Status status) const {
  return absl::IsCancelled(status) && stopping_.stop_requested() ? ServerStoppingError() : status;
}

void ModelRegistry::Stop() { stopping_.request_stop(); }

void ModelRegistry::FinishLoad(const std::string& name, const absl::Status& status,
                               absl::Duration taken) {
  Hear(status);
  std::vector<Done> waiters;
  wan::v1::Model model;
  {
    absl::MutexLock lock(&mutex_);
    Entry& entry = entries_[name];
    waiters.swap(entry.load_waiters);
    if (status.ok()) entry.load_time = taken;
    EndOperation(name, entry, entry.load_operation, status);
    if (ReasonOf(status) == kReasonServerStopping) {
      SetState(name, entry, wan::v1::MODEL_STATE_UNLOADED, absl::OkStatus());
    } else {
      SetState(name, entry, status.ok() ? wan::v1::MODEL_STATE_READY : wan::v1::MODEL_STATE_FAILED,
               status);
    }
    model = Describe(name, entry);
    if (!status.ok()) SetIdle(name);
  }
  if (status.ok()) WantDigests(name);
  for (const Done& done : waiters) Tell(done, status, model);
}

void ModelRegistry::WantDigests(const std::string& name) const {
  if (options_.digests == nullptr) return;
  for (const ModelDescription& model : engine_.Models()) {
    if (model.name == name) options_.digests->Want(model.files);
  }
}

void ModelRegistry::Unload(std::string_view name, const Done& done) {
  const std::string bare(BareModelName(name));
  const Answer answer = BeginUnload(bare);
  if (answer.has_value()) return done(*answer);
  const auto finish = [this, bare, done](const absl::Status& status) {
    wan::v1::Model model;
    {
      absl::MutexLock lock(&mutex_);
      Entry& entry = entries_[bare];
      // If a load was asked for since, the state is LOADING and that load decides.
      if (!status.ok() && entry.state == wan::v1::MODEL_STATE_UNLOADED) {
        SetState(bare, entry, wan::v1::MODEL_STATE_FAILED, status);
      }
      model = Describe(bare, entry);
      SetIdle(bare);
    }
    Tell(done, status, model);
  };
  executor_.Post(
      {[this, bare, finish] { finish(CallEngine([&] { return engine_.UnloadModel(bare); })); },
       [finish] { finish(ServerStoppingError()); }});
}

ModelRegistry::Answer ModelRegistry::BeginUnload(const std::string& name) {
  absl::MutexLock lock(&mutex_);
  const auto found = entries_.find(name);
  if (found == entries_.end()) return ModelNotFound(name);
  Entry& entry = found->second;
  if (entry.state == wan::v1::MODEL_STATE_LOADING) return NotReady(name, entry.state, entry.error);
  const auto jobs = jobs_.find(name);
  if (jobs != jobs_.end()) {
    return Refused(kReasonModelInUse,
                   absl::StrCat("model '", name, "' has ", jobs->second,
                                jobs->second == 1 ? " job that waits or runs; cancel it or "
                                                    "let it end first"
                                                  : " jobs that wait or run; cancel them or "
                                                    "let them end first"));
  }
  const bool resident = entry.state == wan::v1::MODEL_STATE_READY;
  SetState(name, entry, wan::v1::MODEL_STATE_UNLOADED, absl::OkStatus());
  if (resident) return std::nullopt;
  return Describe(name, entry);
}

void ModelRegistry::Warmup(std::string_view name, std::vector<VideoShape> shapes, const Done& done,
                           std::stop_token caller) {
  const absl::Status posted =
      PostWarmup(std::string(BareModelName(name)), std::move(shapes), done, std::move(caller));
  if (!posted.ok()) done(posted);
}

absl::StatusOr<wan::v1::Model> ModelRegistry::BeginWarmup(std::string_view name,
                                                          std::vector<VideoShape> shapes) {
  const std::string bare(BareModelName(name));
  absl::Status posted = PostWarmup(bare, std::move(shapes), nullptr, {});
  if (!posted.ok()) return posted;
  return Get(bare);
}

absl::Status ModelRegistry::PostWarmup(const std::string& name, std::vector<VideoShape> shapes,
                                       const Done& done, std::stop_token caller) {
  if (shapes.size() > kMaxWarmupShapes) {
    return InvalidFields(
        {{"shapes",
          absl::StrCat("has ", shapes.size(), " entries; must have at most ", kMaxWarmupShapes)}});
  }
  absl::Status ready = CheckReady(name);
  if (ready.ok()) ready = CallEngine([&] { return engine_.CheckWarmup(name, shapes); });
  if (!ready.ok()) return ready;
  std::string operation;
  {
    absl::MutexLock lock(&mutex_);
    operation = BeginOperation(name, entries_[name], wan::v1::ModelOperation::KIND_WARMUP);
  }
  const auto finish = [this, name, operation, done](const absl::Status& status) {
    Hear(status);
    wan::v1::Model model;
    {
      absl::MutexLock lock(&mutex_);
      Entry& entry = entries_[name];
      EndOperation(name, entry, operation, status);
      model = Describe(name, entry);
    }
    if (done != nullptr) Tell(done, status, model);
  };
  executor_.Post({[this, name, shapes = std::move(shapes), finish, caller = std::move(caller)] {
                    finish(RunWarmup(name, shapes, caller));
                  },
                  [finish] { finish(ServerStoppingError()); }});
  return absl::OkStatus();
}

std::string ModelRegistry::BeginOperation(const std::string& name, Entry& entry,
                                          wan::v1::ModelOperation::Kind kind) {
  wan::v1::ModelOperation& operation = entry.operations.emplace_back();
  operation.set_name(absl::StrCat("models/", name, "/operations/", ++last_operation_));
  operation.set_kind(kind);
  *operation.mutable_create_time() = ToProto(clock_.Now());
  TellWatchers(name);
  return operation.name();
}

void ModelRegistry::EndOperation(const std::string& name, Entry& entry,
                                 const std::string& operation, const absl::Status& status) {
  int ended = 0;
  for (wan::v1::ModelOperation& known : entry.operations) {
    if (known.name() == operation) {
      *known.mutable_end_time() = ToProto(clock_.Now());
      if (!status.ok()) *known.mutable_error() = ToProto(status);
    }
    ended += known.has_end_time() ? 1 : 0;
  }
  if (ended > kKeptOperations) {
    entry.operations.erase(
        std::find_if(entry.operations.begin(), entry.operations.end(),
                     [](const wan::v1::ModelOperation& known) { return known.has_end_time(); }));
  }
  TellWatchers(name);
}

int64_t ModelRegistry::AddWatcher(std::function<void(const std::string& name)> changed) {
  absl::MutexLock lock(&watchers_mutex_);
  watchers_.emplace(++last_watcher_, std::move(changed));
  return last_watcher_;
}

void ModelRegistry::RemoveWatcher(int64_t watcher) {
  absl::MutexLock lock(&watchers_mutex_);
  watchers_.erase(watcher);
}

void ModelRegistry::TellWatchers(const std::string& name) const {
  // Copies: a watcher may be removed while it is told.
  std::vector<std::function<void(const std::string&)>> told;
  {
    absl::MutexLock lock(&watchers_mutex_);
    for (const auto& [number, changed] : watchers_) told.push_back(changed);
  }
  for (const auto& changed : told) changed(name);
}

absl::Status ModelRegistry::RunWarmup(const std::string& name,
                                      const std::vector<VideoShape>& shapes,
                                      const std::stop_token& caller) {
  std::stop_source stop;  // requested by the caller or by Stop(), whichever is first
  const auto end = [&stop] { stop.request_stop(); };
  const std::stop_callback on_caller(caller, end);
  const std::stop_callback on_server(stopping_.get_token(), end);
  if (stop.stop_requested()) {
    return OrStopping(absl::CancelledError("the caller went away before the warm-up began"));
  }
  return OrStopping(CallEngine([&] { return engine_.Warmup(name, shapes, stop.get_token()); }));
}

absl::Status ModelRegistry::CheckReady(const std::string& name) const {
  absl::MutexLock lock(&mutex_);
  const auto found = entries_.find(name);
  if (found == entries_.end()) return ModelNotFound(name);
  const Entry& entry = found->second;
  if (entry.state == wan::v1::MODEL_STATE_READY) return absl::OkStatus();
  return NotReady(name, entry.state, entry.error);
}

absl::StatusOr<wan::v1::Model> ModelRegistry::Get(std::string_view name) const {
  const std::string bare(BareModelName(name));
  absl::MutexLock lock(&mutex_);
  const auto found = entries_.find(bare);
  if (found == entries_.end()) return ModelNotFound(bare);
  return Describe(bare, found->second);
}

std::vector<wan::v1::Model> ModelRegistry::List() const {
  absl::MutexLock lock(&mutex_);
  std::vector<wan::v1::Model> models;
  for (const auto& [name, entry] : entries_) models.push_back(Describe(name, entry));
  return models;
}

absl::StatusOr<wan::v1::ListModelsResponse> ModelRegistry::List(
    const wan::v1::ListModelsRequest& request) const {
  std::vector<FieldViolation> violations;
  const int limit = request.page_size() == 0 ? kDefaultPageSize : request.page_size();
  if (limit < 0 || limit > kMaxPageSize) {
    violations.push_back({"page_size", absl::StrCat("must be 1 to ", kMaxPageSize, ", or 0 for ",
                                                    kDefaultPageSize, "; got ", limit)});
  }
  std::string after;  // the last name of the page before
  if (!request.page_token().empty()) {
    absl::StatusOr<std::string> place = ParsePageToken(request.page_token(), kListed);
    if (place.ok()) {
      after = *std::move(place);
    } else {
      for (FieldViolation& violation : FieldViolationsOf(place.status())) {
        violations.push_back(std::move(violation));
      }
    }
  }
  if (!violations.empty()) return InvalidFields(violations);
  wan::v1::ListModelsResponse response;
  size_t bytes = 0;
  absl::MutexLock lock(&mutex_);
  for (auto entry = entries_.upper_bound(after); entry != entries_.end(); ++entry) {
    if (response.models_size() == limit || bytes >= kMaxPageBytes) {
      response.set_next_page_token(MakePageToken(after, kListed));
      break;
    }
    *response.add_models() = Describe(entry->first, entry->second);
    bytes += response.models().rbegin()->ByteSizeLong();
    after = entry->first;
  }
  return response;
}

std::optional<absl::Duration> ModelRegistry::LoadTime(std::string_view name) const {
  absl::MutexLock lock(&mutex_);
  const auto found = entries_.find(BareModelName(name));
  return found == entries_.end() ? std::nullopt : found->second.load_time;
}

std::optional<wan::v1::StageReport> ModelRegistry::LoadReport(std::string_view name) const {
  absl::MutexLock lock(&mutex_);
  const auto found = entries_.find(BareModelName(name));
  return found == entries_.end() ? std::nullopt : found->second.load_report;
}

bool ModelRegistry::IsReady(std::string_view name) const {
  return StateOf(name) == wan::v1::MODEL_STATE_READY;
}

std::optional<wan::v1::ModelState> ModelRegistry::StateOf(std::string_view name) const {
  absl::MutexLock lock(&mutex_);
  const auto found = entries_.find(BareModelName(name));
  if (found == entries_.end()) return std::nullopt;
  return found->second.state;
}

absl::Status ModelRegistry::AddJob(std::string_view name) {
  absl::MutexLock lock(&mutex_);
  const auto found = entries_.find(name);
  if (found == entries_.end()) {
    const std::string known = absl::StrJoin(
        entries_, ", ", [](std::string* out, const auto& entry) { out->append(entry.first); });
    return InvalidFields(
        {{"model", absl::StrCat("there is no model '", std::string(name),
                                "'; this server has: ", known.empty() ? "none" : known)}});
  }
  const Entry& entry = found->second;
  if (entry.state == wan::v1::MODEL_STATE_LOADING) {
    return WithRetryDelay(
        WithReason(absl::UnavailableError(
                       absl::StrCat("model '", found->first, "' is being loaded; try again soon")),
                   kReasonModelLoading),
        kLoadingRetryDelay);
  }
  if (entry.state != wan::v1::MODEL_STATE_READY) {
    return NotReady(found->first, entry.state, entry.error);
  }
  ++jobs_[found->first];
  return absl::OkStatus();
}

void ModelRegistry::AddRecoveredJob(std::string_view name) {
  absl::MutexLock lock(&mutex_);
  ++jobs_[std::string(name)];
}

void ModelRegistry::RemoveJob(std::string_view name) {
  absl::MutexLock lock(&mutex_);
  const auto found = jobs_.find(name);
  if (--found->second == 0) jobs_.erase(found);
}

void ModelRegistry::SetState(const std::string& name, Entry& entry, wan::v1::ModelState state,
                             const absl::Status& error) {
  entry.state = state;
  entry.error = error;
  const wan::v1::Model model = Describe(name, entry);
  for (StateListener* listener : options_.listeners) listener->OnModelState(model);
  TellWatchers(name);
}

wan::v1::Model ModelRegistry::Describe(const std::string& name, const Entry& entry) const {
  wan::v1::Model model;
  if (entry.state == wan::v1::MODEL_STATE_READY) {
    for (const ModelDescription& description : engine_.Models()) {
      if (description.name == name) model = ToProto(description);
    }
  }
  model.set_name("models/" + name);
  model.set_path(entry.path);
  model.set_state(entry.state);
  if (!entry.error.ok()) *model.mutable_error() = ToProto(entry.error);
  model.mutable_operations()->Assign(entry.operations.begin(), entry.operations.end());
  return model;
}

}  // namespace wan::server
