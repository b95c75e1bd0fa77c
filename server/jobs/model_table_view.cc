// The part of ModelTable that keeps operations, lists models and tells watchers.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/api/errors.h"
#include "engine/api/utf8.h"
#include "server/conversion/convert.h"
#include "server/conversion/errors.h"
#include "server/conversion/names.h"
#include "server/conversion/page_token.h"
#include "server/jobs/model_errors.h"
#include "server/jobs/model_table.h"

namespace wan::server {
namespace {

constexpr int kDefaultPageSize = 50;
constexpr int kMaxPageSize = 1000;
// A page must stay below 4 MiB, the largest message that gRPC clients accept by default.
constexpr size_t kMaxPageBytes = size_t{3} << 20;
constexpr char kListed[] = "ListModels";
// How many ended operations the table keeps for each model.
constexpr int kKeptOperations = 8;

}  // namespace

std::string ModelTable::BeginOperation(const std::string& name, Entry& entry,
                                       wan::v1::ModelOperation::Kind kind) {
  wan::v1::ModelOperation& operation = entry.operations.emplace_back();
  operation.set_name(absl::StrCat("models/", name, "/operations/", ++last_operation_));
  operation.set_kind(kind);
  *operation.mutable_create_time() = ToProto(clock_.Now());
  TellWatchers(name);
  return operation.name();
}

void ModelTable::EndOperation(const std::string& name, Entry& entry, const std::string& operation,
                              const absl::Status& status) {
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

int64_t ModelTable::AddWatcher(std::function<void(const std::string& name)> changed) {
  absl::MutexLock lock(&watchers_mutex_);
  watchers_.emplace(++last_watcher_, std::move(changed));
  return last_watcher_;
}

void ModelTable::RemoveWatcher(int64_t watcher) {
  absl::MutexLock lock(&watchers_mutex_);
  watchers_.erase(watcher);
}

void ModelTable::TellWatchers(const std::string& name) const {
  // Copy the functions, because a watcher may remove itself while it is called.
  std::vector<std::function<void(const std::string&)>> told;
  {
    absl::MutexLock lock(&watchers_mutex_);
    for (const auto& [number, changed] : watchers_) told.push_back(changed);
  }
  for (const auto& changed : told) changed(name);
}

absl::StatusOr<wan::v1::Model> ModelTable::Get(std::string_view name) const {
  const std::string bare(BareModelName(name));
  absl::MutexLock lock(&mutex_);
  if (const Entry* const known = FindKnown(bare)) return Describe(bare, *known);
  return NotKnown(bare);
}

absl::StatusOr<wan::v1::Model> ModelTable::GetEnded(std::string_view name) const {
  const std::string bare(BareModelName(name));
  absl::MutexLock lock(&mutex_);
  const auto found = entries_.find(bare);
  if (found == entries_.end()) return ModelNotFoundError(bare);
  return Describe(bare, found->second);
}

std::vector<wan::v1::Model> ModelTable::List() const {
  absl::MutexLock lock(&mutex_);
  std::vector<wan::v1::Model> models;
  for (const auto& [name, entry] : entries_) {
    if (FindKnown(name) != nullptr) models.push_back(Describe(name, entry));
  }
  return models;
}

absl::StatusOr<wan::v1::ListModelsResponse> ModelTable::List(
    const wan::v1::ListModelsRequest& request) const {
  std::vector<FieldViolation> violations;
  const int limit = request.page_size() == 0 ? kDefaultPageSize : request.page_size();
  if (limit < 0 || limit > kMaxPageSize) {
    violations.push_back({"page_size", absl::StrCat("must be 1 to ", kMaxPageSize, ", or 0 for ",
                                                    kDefaultPageSize, "; got ", limit)});
  }
  std::string after;  // the last name of the previous page
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
    if (FindKnown(entry->first) == nullptr) continue;
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

std::vector<std::string> ModelTable::Names() const {
  absl::MutexLock lock(&mutex_);
  std::vector<std::string> names;
  for (const auto& [name, entry] : entries_) names.push_back(name);
  return names;
}

std::optional<absl::Duration> ModelTable::LoadTime(std::string_view name) const {
  absl::MutexLock lock(&mutex_);
  const auto found = entries_.find(BareModelName(name));
  return found == entries_.end() ? std::nullopt : found->second.load_time;
}

std::optional<wan::v1::StageReport> ModelTable::LoadReport(std::string_view name, int group) const {
  absl::MutexLock lock(&mutex_);
  const auto found = entries_.find(BareModelName(name));
  if (found == entries_.end()) return std::nullopt;
  return PlaceIn(found->second, group).load_report;
}

bool ModelTable::IsReady(std::string_view name) const {
  return StateOf(name) == wan::v1::MODEL_STATE_READY;
}

std::optional<wan::v1::ModelState> ModelTable::StateOf(std::string_view name) const {
  absl::MutexLock lock(&mutex_);
  const Entry* const known = FindKnown(BareModelName(name));
  if (known == nullptr) return std::nullopt;
  return known->state;
}

bool ModelTable::IsReadyIn(std::string_view name, int group) const {
  absl::MutexLock lock(&mutex_);
  const auto found = entries_.find(BareModelName(name));
  return found != entries_.end() &&
         PlaceIn(found->second, group).state == wan::v1::MODEL_STATE_READY;
}

std::vector<int> ModelTable::ReadyIn(std::string_view name) const {
  const std::string bare(BareModelName(name));
  absl::MutexLock lock(&mutex_);
  const auto found = entries_.find(bare);
  return found == entries_.end() ? std::vector<int>() : ReadyPlaces(bare, found->second);
}

wan::v1::Model ModelTable::Describe(const std::string& name, const Entry& entry) const {
  wan::v1::Model model;
  std::vector<wan::v1::ModelPlacement> placements;
  for (int group = 0; group < groups_.size(); ++group) {
    if (!groups_.MayHave(group, name)) continue;
    const Place& place = PlaceIn(entry, group);
    wan::v1::ModelPlacement& placement = placements.emplace_back();
    placement.set_group(group);
    placement.set_state(place.state);
    if (!place.error.ok()) *placement.mutable_error() = ToProto(place.error);
    if (!groups_.Serves(group) && groups_.serving() > 0) {
      placement.set_state(wan::v1::MODEL_STATE_FAILED);
      *placement.mutable_error() = ToProto(groups_.ProblemOf(group));
    }
    if (placement.state() != wan::v1::MODEL_STATE_READY) continue;
    for (const ModelDescription& description : groups_.engine(group).Models()) {
      if (description.name != name) continue;
      wan::v1::Model resident = ToProto(description);
      *placement.mutable_components() = resident.components();
      if (model.family().empty()) model = std::move(resident);
    }
  }
  model.mutable_placements()->Assign(placements.begin(), placements.end());
  model.set_name("models/" + name);
  model.set_path(ToUtf8(entry.path));
  model.set_state(entry.state);
  if (!entry.error.ok()) *model.mutable_error() = ToProto(entry.error);
  model.mutable_operations()->Assign(entry.operations.begin(), entry.operations.end());
  return model;
}

}  // namespace wan::server
