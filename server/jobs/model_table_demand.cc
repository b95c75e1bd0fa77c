// The part of ModelTable that decides when a group loads a model because jobs wait for it.
#include <algorithm>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "server/conversion/names.h"
#include "server/jobs/model_table.h"

namespace wan::server {
namespace {

// Time before a load that failed for lack of memory is tried again. The time doubles with each
// failure, because a load may read tens of gigabytes before it fails, and delays the group's jobs
// meanwhile.
constexpr absl::Duration kFirstPause = absl::Minutes(1);
constexpr absl::Duration kLongestPause = absl::Hours(1);
constexpr int kMostDoublings = 6;

}  // namespace

void ModelTable::CountLoad(Place& place, const absl::Status& status) const {
  if (status.ok()) {
    place.failed_loads = 0;
    place.retry = absl::InfinitePast();
    return;
  }
  const int doublings = std::min(place.failed_loads, kMostDoublings);
  ++place.failed_loads;
  place.retry = clock_.Steady().Now() + std::min(kFirstPause * (1 << doublings), kLongestPause);
}

bool ModelTable::MayLoadMissing(const std::string& name, const Entry& entry, int group) const {
  if (entry.loading > 0 || !groups_.MayHave(group, name) || !groups_.Serves(group)) return false;
  const Place& place = PlaceIn(entry, group);
  const bool lacks =
      place.state == wan::v1::MODEL_STATE_UNLOADED ||
      (place.state == wan::v1::MODEL_STATE_FAILED && absl::IsResourceExhausted(place.error));
  if (!lacks || clock_.Steady().Now() < place.retry) return false;
  // Jobs were planned for the groups that have the model now, and may not fit on another kind of
  // device.
  const std::vector<int> ready = ReadyPlaces(name, entry);
  return std::any_of(ready.begin(), ready.end(), [&](int other) {
    return groups_.device(other).name == groups_.device(group).name;
  });
}

void ModelTable::ForgetPauses(int group) {
  for (auto& [name, entry] : entries_) {
    PlaceIn(entry, group).retry = absl::InfinitePast();
  }
}

bool ModelTable::MayLoadMissing(std::string_view name, int group) const {
  const std::string bare(BareModelName(name));
  absl::MutexLock lock(&mutex_);
  const auto found = entries_.find(bare);
  return found != entries_.end() && MayLoadMissing(bare, found->second, group);
}

std::optional<ModelSpec> ModelTable::BeginMissing(const std::string& name, int group) {
  absl::MutexLock lock(&mutex_);
  const auto found = entries_.find(name);
  if (found == entries_.end() || !MayLoadMissing(name, found->second, group)) return std::nullopt;
  Entry& entry = found->second;
  entry.replacing = false;
  entry.adding = false;
  EnterLoad(name, entry, {group});
  return ModelSpec{name, entry.path, entry.loras};
}

}  // namespace wan::server
