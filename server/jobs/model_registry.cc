#include "server/jobs/model_registry.h"

#include <algorithm>
#include <iterator>
#include <memory>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "engine/api/errors.h"
#include "server/conversion/convert.h"
#include "server/conversion/errors.h"
#include "server/conversion/names.h"
#include "server/jobs/engine_call.h"
#include "server/jobs/job_sinks.h"
#include "server/jobs/model_errors.h"
#include "server/jobs/model_spec.h"

namespace wan::server {
namespace {

constexpr absl::Duration kLoadingRetryDelay = absl::Seconds(5);

std::string NamesOf(const std::vector<LoraSource>& loras) {
  if (loras.empty()) return "no LoRAs";
  return absl::StrCat("the LoRAs ",
                      absl::StrJoin(loras, ", ", [](auto* out, const LoraSource& lora) {
                        out->append(lora.name);
                      }));
}

}  // namespace

ModelRegistry::ModelRegistry(DeviceGroups& groups, Clock& clock, ModelRegistryOptions options)
    : groups_(groups), clock_(clock), options_(std::move(options)) {}

absl::Status ModelRegistry::Add(const ModelSpec& given) {
  absl::Status valid = CheckSpec(given);
  if (!valid.ok()) return valid;
  ModelSpec spec = given;
  MakeAbsolute(spec);
  absl::MutexLock lock(&mutex_);
  if (entries_.contains(spec.name)) {
    return absl::AlreadyExistsError(absl::StrCat("model '", spec.name,
                                                 "' is named twice; each model needs a "
                                                 "name of its own"));
  }
  Entry& entry = EntryOf(spec.name);
  entry.configured = spec;
  entry.sound = spec;
  entry.path = spec.path;
  entry.loras = spec.loras;
  return absl::OkStatus();
}

void ModelRegistry::Load(ModelSpec spec, const Done& done) {
  spec.name = std::string(BareModelName(spec.name));
  std::vector<int> begin;
  const Answer answer = JoinLoad(spec, done, &begin);
  if (answer.has_value()) done(*answer);
  PostLoad(spec, begin);
}

absl::StatusOr<wan::v1::Model> ModelRegistry::BeginLoad(ModelSpec spec) {
  spec.name = std::string(BareModelName(spec.name));
  std::vector<int> begin;
  const Answer answer = JoinLoad(spec, nullptr, &begin);
  if (answer.has_value()) return *answer;
  absl::StatusOr<wan::v1::Model> model = Get(spec.name);  // before an executor can end it
  PostLoad(spec, begin);
  return model;
}

void ModelRegistry::PostLoad(const ModelSpec& spec, const std::vector<int>& groups) {
  for (const int group : groups) {
    groups_.executor(group).Post(
        {[this, spec, group] {
           const absl::Time begun = clock_.Steady().Now();
           const absl::Status status = RunLoad(spec, group);
           FinishLoad(spec.name, group, status, clock_.Steady().Now() - begun);
         },
         [this, spec, group] {
           FinishLoad(spec.name, group, ServerStoppingError(), absl::ZeroDuration());
         }});
  }
}

void ModelRegistry::Hear(const absl::Status& status, int group) const {
  if (IsDeviceLost(status)) options_.on_device_lost(group, status);
}

ModelRegistry::Entry& ModelRegistry::EntryOf(const std::string& name) {
  Entry& entry = entries_[name];
  entry.places.resize(static_cast<size_t>(groups_.size()));
  return entry;
}

const ModelRegistry::Entry* ModelRegistry::FindKnown(std::string_view name) const {
  const auto found = entries_.find(name);
  if (found == entries_.end()) return nullptr;
  const Entry& entry = found->second;
  return entry.sound.has_value() || entry.loading > 0 ? &entry : nullptr;
}

absl::Status ModelRegistry::NotKnown(const std::string& name) const {
  const auto ended = entries_.find(name);
  return ModelNotFoundError(name, ended == entries_.end() ? absl::OkStatus() : ended->second.error);
}

std::vector<int> ModelRegistry::PlacesOf(std::string_view name) const {
  const bool none_serves = groups_.serving() == 0;
  std::vector<int> places;
  for (int group = 0; group < groups_.size(); ++group) {
    if (groups_.MayHave(group, name) && (none_serves || groups_.Serves(group))) {
      places.push_back(group);
    }
  }
  return places;
}

std::vector<int> ModelRegistry::ReadyPlaces(const std::string& name, const Entry& entry) const {
  std::vector<int> ready;
  for (const int group : PlacesOf(name)) {
    const Place& place = entry.places[static_cast<size_t>(group)];
    if (place.state == wan::v1::MODEL_STATE_READY) ready.push_back(group);
  }
  return ready;
}

void ModelRegistry::SetPlace(Entry& entry, int group, wan::v1::ModelState state,
                             const absl::Status& error) {
  Place& place = entry.places[static_cast<size_t>(group)];
  place.state = state;
  place.error = error;
}

void ModelRegistry::Refresh(const std::string& name, Entry& entry) {
  // The best that it is anywhere.
  constexpr wan::v1::ModelState kFromBest[] = {
      wan::v1::MODEL_STATE_READY, wan::v1::MODEL_STATE_LOADING, wan::v1::MODEL_STATE_FAILED,
      wan::v1::MODEL_STATE_UNLOADED};
  const std::vector<int> places = PlacesOf(name);
  wan::v1::ModelState state = wan::v1::MODEL_STATE_UNLOADED;
  absl::Status error;
  if (places.empty()) {
    // Other groups serve, but those that may have it have left.
    for (int group = 0; group < groups_.size(); ++group) {
      if (!groups_.MayHave(group, name)) continue;
      state = wan::v1::MODEL_STATE_FAILED;
      error = groups_.ProblemOf(group);
    }
  }
  for (const wan::v1::ModelState better : kFromBest) {
    const auto found = std::find_if(places.begin(), places.end(), [&](int group) {
      return entry.places[static_cast<size_t>(group)].state == better;
    });
    if (found == places.end()) continue;
    state = better;
    error = entry.places[static_cast<size_t>(*found)].error;
    break;
  }
  const bool changed = state != entry.state || error != entry.error;
  entry.state = state;
  entry.error = error;
  if (changed) {
    const wan::v1::Model model = Describe(name, entry);
    for (StateListener* listener : options_.listeners) listener->OnModelState(model);
  }
  TellWatchers(name);
}

void ModelRegistry::OnGroupLeft() {
  absl::MutexLock lock(&mutex_);
  for (auto& [name, entry] : entries_) Refresh(name, entry);
}

ModelRegistry::Answer ModelRegistry::JoinLoad(ModelSpec& spec, const Done& done,
                                              std::vector<int>* begin) {
  absl::MutexLock lock(&mutex_);
  if (spec.path.empty()) {
    const Entry* const known = FindKnown(spec.name);
    if (known == nullptr) return NotKnown(spec.name);
    spec.path = known->path;
    if (spec.loras.empty()) spec.loras = known->loras;
  }
  absl::Status valid = CheckSpec(spec);
  if (!valid.ok()) return valid;
  MakeAbsolute(spec);
  if (!IsConfigured(spec)) {
    const std::vector<FieldViolation> outside = options_.roots.Check(spec);
    if (!outside.empty()) return InvalidFields(outside);
  }
  const std::vector<int> places = PlacesOf(spec.name);
  if (places.empty()) {
    return InvalidFields(
        {{"name", absl::StrCat("no device group that serves may have a model '", spec.name,
                               "'; the setting `groups` lists the models of each")}});
  }
  Entry& entry = EntryOf(spec.name);
  const bool same = entry.path == spec.path && entry.loras == spec.loras;
  if (entry.loading > 0) {
    if (!same) {
      return ModelRefusedError(
          kReasonModelLoading,
          absl::StrCat("model '", spec.name, "' is being loaded from ", entry.path, " with ",
                       NamesOf(entry.loras), "; wait until it is loaded, then unload it first"));
    }
  } else {
    const std::vector<int> ready = ReadyPlaces(spec.name, entry);
    if (!ready.empty() && entry.path != spec.path) {
      return ModelRefusedError(kReasonModelLoaded,
                               absl::StrCat("model '", spec.name, "' is loaded from ", entry.path,
                                            " with ", NamesOf(entry.loras), "; unload it first"));
    }
    entry.replacing = !ready.empty() && !same;
    if (entry.replacing) {
      const auto jobs = jobs_.find(spec.name);
      if (jobs != jobs_.end()) return ModelInUseError(spec.name, jobs->second);
      *begin = places;
    } else {
      std::set_difference(places.begin(), places.end(), ready.begin(), ready.end(),
                          std::back_inserter(*begin));
    }
    if (begin->empty()) return Describe(spec.name, entry);
    entry.path = spec.path;
    entry.loras = spec.loras;
    EnterLoad(spec.name, entry, *begin);
  }
  if (done != nullptr) entry.load_waiters.push_back(done);
  return std::nullopt;
}

void ModelRegistry::EnterLoad(const std::string& name, Entry& entry,
                              const std::vector<int>& groups) {
  entry.load_error = absl::OkStatus();
  entry.loaded = 0;
  entry.interrupted = false;
  entry.loading = static_cast<int>(groups.size());
  entry.load_operation = BeginOperation(name, entry, wan::v1::ModelOperation::KIND_LOAD);
  for (const int group : groups) {
    SetPlace(entry, group, wan::v1::MODEL_STATE_LOADING, absl::OkStatus());
    entry.places[static_cast<size_t>(group)].kept = false;
  }
  Refresh(name, entry);
}

bool ModelRegistry::IsConfigured(const ModelSpec& spec) const {
  const auto found = entries_.find(spec.name);
  return found != entries_.end() && found->second.configured.has_value() &&
         found->second.configured->path == spec.path &&
         found->second.configured->loras == spec.loras;
}

void ModelRegistry::SetIdle(const std::string& name) {
  if (EntryOf(name).configured.has_value()) return;
  idle_.remove(name);
  idle_.push_back(name);
  while (idle_.size() > kMaxIdleModels) {
    const std::string oldest = std::move(idle_.front());
    idle_.pop_front();
    const auto found = entries_.find(oldest);
    if (found == entries_.end() || found->second.state == wan::v1::MODEL_STATE_READY ||
        found->second.loading > 0) {
      continue;
    }
    entries_.erase(found);
    TellWatchers(oldest);
  }
}

absl::Status ModelRegistry::RunLoad(const ModelSpec& asked, int group) {
  Engine& engine = groups_.engine(group);
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
  const auto sinks = MakeSinks(options_.sinks, {spec.name, "", 0, {}, group});
  std::vector<TelemetrySink*> views;
  views.reserve(sinks.size());
  for (const auto& sink : sinks) views.push_back(sink.get());
  SpanReportSink initialization(StageKind::kModelInitialization);
  views.push_back(&initialization);
  Recorder recorder(clock_, engine.Monitor(), std::move(views));
  // A load goes on when its caller is gone: others may wait for it, and a client with a short
  // timeout could never load a large model otherwise.
  const std::stop_token stop = stop_token();
  absl::Status loaded = CallEngine([&] { return engine.LoadModel(spec, recorder, stop); });
  if (!loaded.ok()) return OrStopping(loaded, stop);
  {
    absl::MutexLock lock(&mutex_);
    EntryOf(spec.name).places[static_cast<size_t>(group)].load_report = initialization.report();
  }
  if (!options_.warm_up_on_load) return loaded;
  absl::Status warm =
      CallEngine([&] { return engine.Warmup(spec.name, options_.warm_up_shapes, stop); });
  if (warm.ok()) return warm;
  if (IsDeviceLost(warm)) return warm;
  // A model that cannot run must not look ready or hold memory. Keep the warm-up's error, which
  // says why, rather than one of the unloading.
  CallEngine([&] { return engine.UnloadModel(spec.name); }).IgnoreError();
  warm = OrStopping(warm, stop);
  if (ReasonOf(warm) == kReasonServerStopping) return warm;
  return WarmupFailedError(warm);
}

absl::Status ModelRegistry::OrStopping(absl::Status status, const std::stop_token& stop) {
  return absl::IsCancelled(status) && stop.stop_requested() ? ServerStoppingError() : status;
}

std::stop_token ModelRegistry::stop_token() const {
  absl::MutexLock lock(&mutex_);
  return stopping_.get_token();
}

void ModelRegistry::Stop() {
  std::stop_source stopping(std::nostopstate);
  {
    absl::MutexLock lock(&mutex_);
    stopping = stopping_;
  }
  stopping.request_stop();  // without the lock, because it runs callbacks of the engine
}

void ModelRegistry::Resume() {
  std::vector<std::string> names;
  {
    absl::MutexLock lock(&mutex_);
    if (!stopping_.stop_requested()) return;
    stopping_ = std::stop_source();
    for (const auto& [name, entry] : entries_) names.push_back(name);
  }
  for (const std::string& name : names) LoadInterrupted(name);
}

void ModelRegistry::LoadInterrupted(const std::string& name) {
  ModelSpec spec;
  {
    absl::MutexLock lock(&mutex_);
    const auto found = entries_.find(name);
    if (found == entries_.end() || found->second.loading > 0 || stopping_.stop_requested() ||
        !std::exchange(found->second.interrupted, false)) {
      return;
    }
    spec.name = name;
    spec.path = found->second.path;
    spec.loras = found->second.loras;
  }
  // The listeners hear how it ends.
  Load(std::move(spec), [](const absl::StatusOr<wan::v1::Model>&) {});
}

void ModelRegistry::SettlePlace(const std::string& name, Entry& entry, int group,
                                const absl::Status& status) {
  Place& place = entry.places[static_cast<size_t>(group)];
  // The engine keeps a resident model if it refuses what would replace it.
  if (entry.replacing && !status.ok() && !IsDeviceLost(status)) {
    const std::vector<ModelDescription> resident = groups_.engine(group).Models();
    place.kept = std::any_of(resident.begin(), resident.end(),
                             [&](const ModelDescription& model) { return model.name == name; });
  }
  if (status.ok() || place.kept) {
    SetPlace(entry, group, wan::v1::MODEL_STATE_READY, absl::OkStatus());
  } else if (ReasonOf(status) == kReasonServerStopping) {
    SetPlace(entry, group, wan::v1::MODEL_STATE_UNLOADED, absl::OkStatus());
    entry.interrupted = groups_.Serves(group);  // else it is the device that is gone
  } else {
    SetPlace(entry, group, wan::v1::MODEL_STATE_FAILED, status);
  }
  entry.loaded += status.ok() ? 1 : 0;
  CountLoad(place, status);
  entry.load_error.Update(status);
}

absl::Status ModelRegistry::SettleLoad(const std::string& name, Entry& entry) {
  absl::Status outcome;
  if (entry.loaded > 0) {
    entry.sound = ModelSpec{name, entry.path, entry.loras};
    // A group that kept the former LoRAs would run jobs with others than the model shows.
    for (int group = 0; group < groups_.size(); ++group) {
      if (!entry.places[static_cast<size_t>(group)].kept) continue;
      SetPlace(entry, group, wan::v1::MODEL_STATE_FAILED, entry.load_error);
    }
  } else {
    if (entry.replacing || ReadyPlaces(name, entry).empty()) outcome = entry.load_error;
    if (entry.sound.has_value()) {
      entry.path = entry.sound->path;
      entry.loras = entry.sound->loras;
    }
  }
  EndOperation(name, entry, entry.load_operation, outcome);
  return outcome;
}

void ModelRegistry::FinishLoad(const std::string& name, int group, const absl::Status& ended,
                               absl::Duration taken) {
  Hear(ended, group);
  const bool stopping = ReasonOf(ended) == kReasonServerStopping;
  // The task was dropped because the group has left.
  const bool left = stopping && !groups_.Serves(group) && groups_.serving() > 0;
  const absl::Status status = left ? groups_.ProblemOf(group) : ended;
  std::vector<Done> waiters;
  absl::Status outcome;
  wan::v1::Model model;
  bool kept = false;
  {
    absl::MutexLock lock(&mutex_);
    Entry& entry = EntryOf(name);
    if (status.ok()) entry.load_time = taken;
    SettlePlace(name, entry, group, status);
    kept = entry.places[static_cast<size_t>(group)].kept;
    if (--entry.loading == 0) {
      waiters.swap(entry.load_waiters);
      outcome = SettleLoad(name, entry);
    }
    Refresh(name, entry);
    model = Describe(name, entry);
    if (entry.loading == 0 && !outcome.ok()) SetIdle(name);
  }
  if (status.ok()) WantDigests(name, group);
  if (!status.ok() && !stopping && (groups_.size() > 1 || kept)) {
    // The model may well be READY in another group, whose callers hear nothing of this one, or here
    // with what it had.
    const absl::Status problem(
        status.code(),
        absl::StrCat("model '", name, "' could not be loaded in group ", group, " (",
                     groups_.device(group).device, ")",
                     kept ? ", and keeps the LoRAs that it had" : "", ": ", status.message()));
    for (StateListener* listener : options_.listeners) listener->OnProblem(problem);
  }
  for (const Done& done : waiters) Tell(done, outcome, model);
  LoadInterrupted(name);
}

void ModelRegistry::Tell(const Done& done, const absl::Status& status,
                         const wan::v1::Model& model) {
  if (status.ok()) {
    done(model);
  } else {
    done(status);
  }
}

void ModelRegistry::WantDigests(const std::string& name, int group) const {
  if (options_.digests == nullptr) return;
  for (const ModelDescription& model : groups_.engine(group).Models()) {
    if (model.name == name) options_.digests->Want(model.files);
  }
}

void ModelRegistry::Unload(std::string_view name, const Done& done) {
  const std::string bare(BareModelName(name));
  std::vector<int> resident;
  const Answer answer = BeginUnload(bare, &resident);
  if (answer.has_value()) return done(*answer);
  const auto shared = std::make_shared<Shared>();
  shared->left = static_cast<int>(resident.size());
  for (const int group : resident) {
    const auto finish = [this, bare, done, group, shared](const absl::Status& status) {
      absl::Status outcome;
      wan::v1::Model model;
      {
        absl::MutexLock lock(&mutex_);
        Entry& entry = EntryOf(bare);
        const Place& place = entry.places[static_cast<size_t>(group)];
        // If a load was asked for since, the place is LOADING and that load decides.
        if (!status.ok() && place.state == wan::v1::MODEL_STATE_UNLOADED) {
          SetPlace(entry, group, wan::v1::MODEL_STATE_FAILED, status);
          Refresh(bare, entry);
        }
        if (status.ok()) ForgetPauses(group);
        shared->error.Update(status);
        if (--shared->left > 0) return;
        outcome = shared->error;
        model = Describe(bare, entry);
        SetIdle(bare);
      }
      Tell(done, outcome, model);
    };
    groups_.executor(group).Post(
        {[this, bare, group, finish] {
           finish(CallEngine([&] { return groups_.engine(group).UnloadModel(bare); }));
         },
         [finish] { finish(ServerStoppingError()); }});
  }
}

ModelRegistry::Answer ModelRegistry::BeginUnload(const std::string& name,
                                                 std::vector<int>* resident) {
  absl::MutexLock lock(&mutex_);
  if (FindKnown(name) == nullptr) return NotKnown(name);
  Entry& entry = EntryOf(name);
  if (entry.loading > 0) {
    return ModelNotReadyError(name, wan::v1::MODEL_STATE_LOADING, entry.error);
  }
  const auto jobs = jobs_.find(name);
  if (jobs != jobs_.end()) return ModelInUseError(name, jobs->second);
  entry.interrupted = false;
  *resident = ReadyPlaces(name, entry);
  for (int group = 0; group < groups_.size(); ++group) {
    SetPlace(entry, group, wan::v1::MODEL_STATE_UNLOADED, absl::OkStatus());
  }
  Refresh(name, entry);
  if (!resident->empty()) return std::nullopt;
  return Describe(name, entry);
}

absl::Status ModelRegistry::AddJob(std::string_view name) {
  absl::MutexLock lock(&mutex_);
  const std::string bare(name);
  const Entry* const entry = FindKnown(name);
  if (entry == nullptr) {
    std::vector<std::string> known;
    for (const auto& [other, unused] : entries_) {
      if (FindKnown(other) != nullptr) known.push_back(other);
    }
    return InvalidFields(
        {{"model", absl::StrCat("there is no model '", bare, "'; this server has: ",
                                known.empty() ? "none" : absl::StrJoin(known, ", "))}});
  }
  if (entry->state == wan::v1::MODEL_STATE_LOADING) {
    return WithRetryDelay(WithReason(absl::UnavailableError(absl::StrCat(
                                         "model '", bare, "' is being loaded; try again soon")),
                                     kReasonModelLoading),
                          kLoadingRetryDelay);
  }
  if (entry->state != wan::v1::MODEL_STATE_READY) {
    return ModelNotReadyError(bare, entry->state, entry->error);
  }
  ++jobs_[bare];
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

}  // namespace wan::server
