#include "server/jobs/model_table.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "engine/api/errors.h"
#include "server/conversion/errors.h"
#include "server/jobs/lora_list.h"
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

absl::Status ModelTable::Add(const ModelSpec& given) {
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

ModelTable::Entry& ModelTable::EntryOf(const std::string& name) {
  Entry& entry = entries_[name];
  entry.places.resize(static_cast<size_t>(groups_.size()));
  return entry;
}

const ModelTable::Entry* ModelTable::FindKnown(std::string_view name) const {
  const auto found = entries_.find(name);
  if (found == entries_.end()) return nullptr;
  const Entry& entry = found->second;
  return entry.sound.has_value() || entry.loading > 0 ? &entry : nullptr;
}

absl::Status ModelTable::NotKnown(const std::string& name) const {
  const auto ended = entries_.find(name);
  return ModelNotFoundError(name, ended == entries_.end() ? absl::OkStatus() : ended->second.error);
}

std::vector<int> ModelTable::PlacesOf(std::string_view name) const {
  const bool none_serves = groups_.serving() == 0;
  std::vector<int> places;
  for (int group = 0; group < groups_.size(); ++group) {
    if (groups_.MayHave(group, name) && (none_serves || groups_.Serves(group))) {
      places.push_back(group);
    }
  }
  return places;
}

std::vector<int> ModelTable::ReadyPlaces(const std::string& name, const Entry& entry) const {
  std::vector<int> ready;
  for (const int group : PlacesOf(name)) {
    const Place& place = PlaceIn(entry, group);
    if (place.state == wan::v1::MODEL_STATE_READY) ready.push_back(group);
  }
  return ready;
}

void ModelTable::SetPlace(Entry& entry, int group, wan::v1::ModelState state,
                          const absl::Status& error) {
  Place& place = PlaceIn(entry, group);
  place.state = state;
  place.error = error;
}

void ModelTable::Refresh(const std::string& name, Entry& entry) {
  // The states from the best to the worst; a model has the best state that it has in any group.
  constexpr wan::v1::ModelState kFromBest[] = {
      wan::v1::MODEL_STATE_READY, wan::v1::MODEL_STATE_LOADING, wan::v1::MODEL_STATE_FAILED,
      wan::v1::MODEL_STATE_UNLOADED};
  const std::vector<int> places = PlacesOf(name);
  wan::v1::ModelState state = wan::v1::MODEL_STATE_UNLOADED;
  absl::Status error;
  if (places.empty()) {
    // All groups that may have the model were lost, while others still serve.
    for (int group = 0; group < groups_.size(); ++group) {
      if (!groups_.MayHave(group, name)) continue;
      state = wan::v1::MODEL_STATE_FAILED;
      error = groups_.ProblemOf(group);
    }
  }
  for (const wan::v1::ModelState better : kFromBest) {
    const auto found = std::find_if(places.begin(), places.end(), [&](int group) {
      return PlaceIn(entry, group).state == better;
    });
    if (found == places.end()) continue;
    state = better;
    error = PlaceIn(entry, *found).error;
    break;
  }
  const bool changed = state != entry.state || error != entry.error;
  entry.state = state;
  entry.error = error;
  if (changed) {
    const wan::v1::Model model = Describe(name, entry);
    for (StateListener* listener : listeners_) listener->OnModelState(model);
  }
  TellWatchers(name);
}

void ModelTable::OnGroupLeft() {
  absl::MutexLock lock(&mutex_);
  for (auto& [name, entry] : entries_) Refresh(name, entry);
}

std::set<std::string> ModelTable::ConfiguredPaths(const std::string& name) const {
  absl::MutexLock lock(&mutex_);
  return ConfiguredPathsLocked(name);
}

std::set<std::string> ModelTable::ConfiguredPathsLocked(const std::string& name) const {
  const auto found = entries_.find(name);
  if (found == entries_.end() || !found->second.configured.has_value()) return {};
  std::set<std::string> paths = {found->second.configured->path};
  for (const LoraSource& lora : found->second.configured->loras) paths.insert(lora.path);
  return paths;
}

absl::Status ModelTable::Complete(const LoadCall& call,
                                  const std::vector<LoraSource>& found) const {
  ModelSpec& spec = call.spec;
  if (spec.path.empty()) {
    const Entry* const known = FindKnown(spec.name);
    if (known == nullptr) return NotKnown(spec.name);
    spec.path = known->path;
    if (spec.loras.empty()) spec.loras = Registered(known->loras);
  }
  if (absl::Status edited = Edit(call.edits, found, spec.loras); !edited.ok()) return edited;
  if (absl::Status valid = CheckSpec(spec); !valid.ok()) return valid;
  AddFound(found, spec.loras);
  MakeAbsolute(spec);
  const std::vector<FieldViolation> outside =
      call.roots.Check(spec, ConfiguredPathsLocked(spec.name));
  return outside.empty() ? absl::OkStatus() : InvalidFields(outside);
}

ModelTable::Answer ModelTable::BeginLoad(const LoadCall& call, const Done& done,
                                         std::vector<int>* begin) {
  ModelSpec& spec = call.spec;
  // Call Find outside the lock, because it reads the disk.
  const absl::StatusOr<std::vector<LoraSource>> found = call.folders.Find(spec.name);
  if (!found.ok()) return found.status();
  absl::MutexLock lock(&mutex_);
  if (absl::Status complete = Complete(call, *found); !complete.ok()) return complete;
  const std::vector<int> places = PlacesOf(spec.name);
  if (places.empty()) {
    return InvalidFields(
        {{"name", absl::StrCat("no device group that serves may have a model '", spec.name,
                               "'; the setting `groups` lists the models of each")}});
  }
  Entry& entry = EntryOf(spec.name);
  const bool same = entry.path == spec.path && entry.loras == spec.loras;
  if (entry.loading > 0) {
    if (!same || entry.undoing.has_value()) {
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
    entry.adding = entry.replacing && Extends(spec.loras, entry.loras);
    if (entry.replacing) {
      const auto jobs = jobs_.find(spec.name);
      if (jobs != jobs_.end() && !entry.adding) return ModelInUseError(spec.name, jobs->second);
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

void ModelTable::EnterLoad(const std::string& name, Entry& entry, const std::vector<int>& groups) {
  entry.load_error = absl::OkStatus();
  entry.interrupted = false;
  entry.loading = static_cast<int>(groups.size());
  entry.load_operation = BeginOperation(name, entry, wan::v1::ModelOperation::KIND_LOAD);
  for (Place& place : entry.places) place.loaded = place.kept = false;
  for (const int group : groups) {
    const Place& place = PlaceIn(entry, group);
    if (entry.adding && place.state == wan::v1::MODEL_STATE_READY) continue;
    SetPlace(entry, group, wan::v1::MODEL_STATE_LOADING, absl::OkStatus());
  }
  Refresh(name, entry);
}

std::optional<std::string> ModelTable::ReplacedPath(const std::string& name, int group) const {
  {
    absl::MutexLock lock(&mutex_);
    const auto found = entries_.find(name);
    if (found == entries_.end() || !found->second.replacing) return std::nullopt;
  }
  for (const ModelDescription& model : groups_.engine(group).Models()) {
    if (model.name == name) return model.path;
  }
  return std::nullopt;
}

std::optional<ModelSpec> ModelTable::TakeInterrupted(const std::string& name) {
  absl::MutexLock lock(&mutex_);
  const auto found = entries_.find(name);
  if (found == entries_.end() || found->second.loading > 0 ||
      !std::exchange(found->second.interrupted, false)) {
    return std::nullopt;
  }
  return ModelSpec{name, found->second.path, found->second.loras};
}

void ModelTable::NoteLoadReport(const std::string& name, int group,
                                const std::optional<wan::v1::StageReport>& report) {
  absl::MutexLock lock(&mutex_);
  PlaceIn(EntryOf(name), group).load_report = report;
}

void ModelTable::SettlePlace(const std::string& name, Entry& entry, int group,
                             const absl::Status& status) {
  Place& place = PlaceIn(entry, group);
  // If the engine refuses the new LoRAs, it keeps the model with the former LoRAs.
  if (entry.replacing && !entry.undoing.has_value() && !status.ok() && !IsDeviceLost(status)) {
    const std::vector<ModelDescription> resident = groups_.engine(group).Models();
    place.kept = std::any_of(resident.begin(), resident.end(),
                             [&](const ModelDescription& model) { return model.name == name; });
  }
  if (status.ok() || place.kept) {
    SetPlace(entry, group, wan::v1::MODEL_STATE_READY, absl::OkStatus());
  } else if (ReasonOf(status) == kReasonServerStopping) {
    SetPlace(entry, group, wan::v1::MODEL_STATE_UNLOADED, absl::OkStatus());
    // False: the task ended because the device was lost, not because of a stop.
    entry.interrupted = groups_.Serves(group);
  } else {
    SetPlace(entry, group, wan::v1::MODEL_STATE_FAILED, status);
  }
  place.loaded = status.ok();
  CountLoad(place, status);
  entry.load_error.Update(status);
}

std::vector<int> ModelTable::BeginUndo(Entry& entry) {
  const bool kept = std::any_of(entry.places.begin(), entry.places.end(),
                                [](const Place& place) { return place.kept; });
  std::vector<int> changed;
  for (int group = 0; group < groups_.size(); ++group) {
    if (kept && PlaceIn(entry, group).loaded) changed.push_back(group);
  }
  if (changed.empty()) return {};
  entry.undoing = entry.load_error;
  entry.path = entry.sound->path;
  entry.loras = entry.sound->loras;
  entry.loading = static_cast<int>(changed.size());
  for (Place& place : entry.places) place.kept = false;
  if (entry.adding) return changed;
  for (const int group : changed) {
    SetPlace(entry, group, wan::v1::MODEL_STATE_LOADING, absl::OkStatus());
  }
  return changed;
}

absl::Status ModelTable::SettleLoad(const std::string& name, Entry& entry) {
  const bool loaded = std::any_of(entry.places.begin(), entry.places.end(),
                                  [](const Place& place) { return place.loaded; });
  absl::Status outcome;
  if (entry.undoing.has_value()) {
    outcome = *std::exchange(entry.undoing, std::nullopt);
  } else if (loaded) {
    entry.sound = ModelSpec{name, entry.path, entry.loras};
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

ModelTable::LoadEnd ModelTable::EndLoad(const std::string& name, int group,
                                        const absl::Status& status, absl::Duration taken) {
  LoadEnd end;
  absl::MutexLock lock(&mutex_);
  Entry& entry = EntryOf(name);
  if (status.ok()) entry.load_time = taken;
  SettlePlace(name, entry, group, status);
  end.kept = PlaceIn(entry, group).kept;
  end.stranded =
      entry.undoing.has_value() && PlaceIn(entry, group).state == wan::v1::MODEL_STATE_FAILED;
  if (--entry.loading == 0) {
    end.undo_groups = BeginUndo(entry);
    end.undo = {name, entry.path, entry.loras};
  }
  if (entry.loading == 0) {
    end.waiters.swap(entry.load_waiters);
    end.outcome = SettleLoad(name, entry);
  }
  Refresh(name, entry);
  end.model = Describe(name, entry);
  if (entry.loading > 0) return end;
  // The state stayed READY, so Refresh has not told the listeners of the new LoRAs.
  if (entry.adding && end.outcome.ok()) {
    for (StateListener* listener : listeners_) listener->OnModelState(end.model);
  }
  entry.adding = false;
  if (!end.outcome.ok()) SetIdle(name);
  return end;
}

ModelTable::Answer ModelTable::BeginUnload(const std::string& name, std::vector<int>* resident) {
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

void ModelTable::EndUnload(const std::string& name, int group, const absl::Status& status) {
  absl::MutexLock lock(&mutex_);
  Entry& entry = EntryOf(name);
  // If a new load has begun meanwhile, the place is LOADING, and the new load sets the place's
  // state.
  if (!status.ok() && PlaceIn(entry, group).state == wan::v1::MODEL_STATE_UNLOADED) {
    SetPlace(entry, group, wan::v1::MODEL_STATE_FAILED, status);
    Refresh(name, entry);
  }
  if (status.ok()) ForgetPauses(group);
}

wan::v1::Model ModelTable::SetUnloaded(const std::string& name) {
  absl::MutexLock lock(&mutex_);
  wan::v1::Model model = Describe(name, EntryOf(name));
  SetIdle(name);
  return model;
}

absl::StatusOr<std::vector<int>> ModelTable::CheckReady(const std::string& name) const {
  absl::MutexLock lock(&mutex_);
  const Entry* const known = FindKnown(name);
  if (known == nullptr) return NotKnown(name);
  const Entry& entry = *known;
  std::vector<int> ready = ReadyPlaces(name, entry);
  if (ready.empty()) return ModelNotReadyError(name, entry.state, entry.error);
  return ready;
}

std::string ModelTable::BeginWarmup(const std::string& name) {
  absl::MutexLock lock(&mutex_);
  return BeginOperation(name, EntryOf(name), wan::v1::ModelOperation::KIND_WARMUP);
}

wan::v1::Model ModelTable::EndWarmup(const std::string& name, const std::string& operation,
                                     const absl::Status& outcome) {
  absl::MutexLock lock(&mutex_);
  Entry& entry = EntryOf(name);
  EndOperation(name, entry, operation, outcome);
  return Describe(name, entry);
}

bool ModelTable::SetFailed(const std::string& name, int group, const absl::Status& error) {
  absl::MutexLock lock(&mutex_);
  Entry& entry = EntryOf(name);
  if (PlaceIn(entry, group).state != wan::v1::MODEL_STATE_READY) return false;
  SetPlace(entry, group, wan::v1::MODEL_STATE_FAILED, error);
  Refresh(name, entry);
  if (ReadyPlaces(name, entry).empty()) SetIdle(name);
  return true;
}

void ModelTable::SetIdle(const std::string& name) {
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

absl::Status ModelTable::AddJob(std::string_view name) {
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

void ModelTable::AddRecoveredJob(std::string_view name) {
  absl::MutexLock lock(&mutex_);
  ++jobs_[std::string(name)];
}

void ModelTable::RemoveJob(std::string_view name) {
  absl::MutexLock lock(&mutex_);
  const auto found = jobs_.find(name);
  if (--found->second == 0) jobs_.erase(found);
}

}  // namespace wan::server
