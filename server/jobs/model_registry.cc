#include "server/jobs/model_registry.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "engine/api/errors.h"
#include "server/conversion/convert.h"
#include "server/conversion/errors.h"
#include "server/conversion/names.h"
#include "server/jobs/engine_call.h"

namespace wan::server {
namespace {

constexpr absl::Duration kLoadingRetryDelay = absl::Seconds(5);
constexpr size_t kMaxNameLength = 63;

void CheckName(const std::string& field, const std::string& name,
               std::vector<FieldViolation>& violations) {
  const bool named = std::all_of(name.begin(), name.end(), [](unsigned char c) {
    return absl::ascii_isalnum(c) || c == '.' || c == '_' || c == '-';
  });
  if (named && !name.empty() && name.size() <= kMaxNameLength) return;
  violations.push_back({field, absl::StrCat("'", name, "' is not a valid name; must be 1 to ",
                                            kMaxNameLength, " letters, digits, '.', '_' and '-'")});
}

absl::Status CheckSpec(const ModelSpec& spec) {
  std::vector<FieldViolation> violations;
  CheckName("name", spec.name, violations);
  if (spec.path.empty()) {
    violations.push_back({"path", "must be a checkpoint's folder or 'synthetic:FAMILY'"});
  }
  for (size_t i = 0; i < spec.loras.size(); ++i) {
    const std::string field = absl::StrCat("loras[", i, "]");
    CheckName(field + ".name", spec.loras[i].name, violations);
    if (spec.loras[i].path.empty()) {
      violations.push_back(
          {field + ".path", "must be a safetensors file or a folder that PEFT wrote"});
    }
  }
  return violations.empty() ? absl::OkStatus() : InvalidFields(violations);
}

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
  if (!begin) return;
  executor_.Post({[this, spec] { FinishLoad(spec.name, RunLoad(spec)); },
                  [this, spec] { FinishLoad(spec.name, ServerStoppingError()); }});
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
      SetState(spec.name, entry, wan::v1::MODEL_STATE_LOADING, absl::OkStatus());
      *begin = true;
  }
  entry.load_waiters.push_back(done);
  return std::nullopt;
}

absl::Status ModelRegistry::RunLoad(const ModelSpec& spec) {
  const auto sinks = MakeSinks(options_.sinks, {spec.name, "", 0});
  std::vector<TelemetrySink*> views;
  views.reserve(sinks.size());
  for (const auto& sink : sinks) views.push_back(sink.get());
  Recorder recorder(clock_, engine_.Monitor(), std::move(views));
  // A load goes on when its caller is gone: others may wait for it, and a client with a short
  // timeout could never load a large model otherwise.
  const std::stop_token stop = stopping_.get_token();
  absl::Status loaded = CallEngine([&] { return engine_.LoadModel(spec, recorder, stop); });
  if (!loaded.ok()) return OrStopping(loaded);
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

void ModelRegistry::FinishLoad(const std::string& name, const absl::Status& status) {
  Hear(status);
  std::vector<Done> waiters;
  wan::v1::Model model;
  {
    absl::MutexLock lock(&mutex_);
    Entry& entry = entries_[name];
    waiters.swap(entry.load_waiters);
    if (ReasonOf(status) == kReasonServerStopping) {
      SetState(name, entry, wan::v1::MODEL_STATE_UNLOADED, absl::OkStatus());
    } else {
      SetState(name, entry, status.ok() ? wan::v1::MODEL_STATE_READY : wan::v1::MODEL_STATE_FAILED,
               status);
    }
    model = Describe(name, entry);
  }
  for (const Done& done : waiters) Tell(done, status, model);
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
  const std::string bare(BareModelName(name));
  if (shapes.size() > kMaxWarmupShapes) {
    return done(InvalidFields(
        {{"shapes",
          absl::StrCat("has ", shapes.size(), " entries; must have at most ", kMaxWarmupShapes)}}));
  }
  absl::Status ready = CheckReady(bare);
  if (ready.ok()) ready = CallEngine([&] { return engine_.CheckWarmup(bare, shapes); });
  if (!ready.ok()) return done(ready);
  executor_.Post({[this, bare, shapes = std::move(shapes), done, caller = std::move(caller)] {
                    absl::Status status = RunWarmup(bare, shapes, caller);
                    Hear(status);
                    done(status.ok() ? Get(bare) : status);
                  },
                  [done] { done(ServerStoppingError()); }});
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

bool ModelRegistry::IsReady(std::string_view name) const {
  absl::MutexLock lock(&mutex_);
  const auto found = entries_.find(BareModelName(name));
  return found != entries_.end() && found->second.state == wan::v1::MODEL_STATE_READY;
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
  return model;
}

}  // namespace wan::server
