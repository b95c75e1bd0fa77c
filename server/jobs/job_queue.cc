#include "server/jobs/job_queue.h"

#include <algorithm>
#include <tuple>
#include <vector>

namespace wan::server {

QueueSum& QueueSum::operator+=(const QueueSum& other) {
  jobs += other.jobs;
  unknown += other.unknown;
  estimate += other.estimate;
  return *this;
}

QueueSum& QueueSum::operator-=(const QueueSum& other) {
  jobs -= other.jobs;
  unknown -= other.unknown;
  estimate -= other.estimate;
  return *this;
}

namespace internal {

QueueSum SumOf(const QueueEntry& entry) {
  return {1, entry.estimate.has_value() ? 0 : 1, entry.estimate.value_or(absl::ZeroDuration())};
}

}  // namespace internal

QueueSum JobQueue::Add(QueueEntry entry) {
  auto lane = lanes_.find(entry.owner);
  if (lane == lanes_.end()) {
    lane = lanes_.try_emplace(entry.owner).first;
    lane->second.used = use_of_(entry.owner);
  }
  const EntryPlace place{lane, KeyOf(entry)};
  places_.emplace(entry.job, place);
  models_[entry.model] += internal::SumOf(entry);
  if (entry.ready) lane->second.ready[entry.model].insert(place.key);
  lane->second.order.insert({place.key, std::move(entry)});
  Index(lane->second);
  const QueueSum before = SumBefore(PlaceOf(place));
  lane->second.order.find(place.key)->second.announced_position = before.jobs;
  return before;
}

void JobQueue::MarkReady(const std::string& job) {
  const auto found = places_.find(job);
  if (found == places_.end()) return;
  Lane& lane = found->second.lane->second;
  QueueEntry& entry = lane.order.find(found->second.key)->second;
  entry.ready = true;
  lane.ready[entry.model].insert(found->second.key);
}

void JobQueue::Remove(const std::string& job) {
  const auto found = places_.find(job);
  if (found != places_.end()) Take(found->second);
}

void JobQueue::RefreshUse() {
  for (auto& [owner, lane] : lanes_) {
    const absl::Duration used = use_of_(owner);
    if (std::exchange(lane.used, used) != used) Index(lane);
  }
}

std::optional<JobQueue::EntryPlace> JobQueue::FirstPlace(const Accepts& runnable,
                                                         const Accepts& may_run) {
  std::map<std::string, bool> asked;
  const auto can_run = [&](const std::string& model) {
    const auto [answer, first] = asked.try_emplace(model, false);
    if (first) answer->second = runnable(model);
    return answer->second;
  };
  std::optional<EntryPlace> first;
  const auto turn = [](const EntryPlace& place) {
    return std::tuple(place.key.first, place.lane->second.used, place.key.second);
  };
  for (auto lane = lanes_.begin(); lane != lanes_.end(); ++lane) {
    if (lane->second.ready.empty() || !may_run(lane->first)) continue;
    for (const auto& [model, keys] : lane->second.ready) {
      ++looked_at_;
      const EntryPlace place{lane, *keys.begin()};
      if ((!first.has_value() || turn(place) < turn(*first)) && can_run(model)) first = place;
    }
  }
  return first;
}

const QueueEntry* JobQueue::First(const Accepts& runnable, const Accepts& may_run) {
  const std::optional<EntryPlace> first = FirstPlace(runnable, may_run);
  if (!first.has_value()) return nullptr;
  return &first->lane->second.order.find(first->key)->second;
}

std::optional<QueueEntry> JobQueue::TakeFirst(const Accepts& runnable, const Accepts& may_run) {
  const std::optional<EntryPlace> first = FirstPlace(runnable, may_run);
  if (!first.has_value()) return std::nullopt;
  return Take(*first);
}

std::optional<int> JobQueue::Position(const std::string& job) const {
  const std::optional<QueueSum> before = Before(job);
  if (!before.has_value()) return std::nullopt;
  return before->jobs;
}

std::optional<QueueSum> JobQueue::Before(const std::string& job) const {
  const std::optional<Place> place = PlaceOf(job);
  if (!place.has_value()) return std::nullopt;
  return SumBefore(*place);
}

QueueSum JobQueue::BeforeNew(const std::string& owner, int priority) const {
  const Key last(-priority, std::numeric_limits<uint64_t>::max());
  const auto lane = lanes_.find(owner);
  if (lane == lanes_.end()) return SumBefore({last.first, use_of_(owner), last.second});
  const internal::QueueCut cut =
      lane->second.order.Cut([&](const Key& key, const QueueSum&) { return key < last; });
  return SumBefore(PlaceIn(lane->second, last, cut.before));
}

std::optional<QueueSum> JobQueue::BeforeNth(const std::string& owner, int n) const {
  const auto lane = lanes_.find(owner);
  if (lane == lanes_.end()) return std::nullopt;
  const internal::QueueCut cut = lane->second.order.Cut(
      [&](const Key&, const QueueSum& before) { return before.jobs + 1 < n; });
  if (!cut.behind.has_value()) return std::nullopt;
  return SumBefore(PlaceIn(lane->second, *cut.behind, cut.before));
}

std::optional<JobQueue::Place> JobQueue::PlaceOf(const std::string& job) const {
  const auto found = places_.find(job);
  if (found == places_.end()) return std::nullopt;
  return PlaceOf(found->second);
}

std::optional<JobQueue::Place> JobQueue::Visit(
    const Place& from, int limit,
    const std::function<void(QueueEntry& entry, const QueueSum& before)>& visit) {
  // An entry of a heap that has the next job of each lane that the visit has entered; the earliest
  // job is on top.
  struct Next {
    Place place;
    Lane* lane = nullptr;
    Tree::iterator entry;
    QueueSum before;  // sum of the lane's entries before `entry`

    bool operator<(const Next& other) const { return other.place < place; }
  };
  std::vector<Next> next;
  QueueSum of_begun;
  QueueSum before = index_.Before(
      from,
      [&](Lane& lane) {
        const internal::QueueCut cut = CutAt(lane, from);
        of_begun += cut.before;
        if (!cut.behind.has_value()) return;
        next.push_back({PlaceIn(lane, *cut.behind, cut.before), &lane, lane.order.find(*cut.behind),
                        cut.before});
      },
      principals_looked_at_);
  before += of_begun;
  std::make_heap(next.begin(), next.end());
  // The visit adds each other lane to the heap when it reaches the lane's first job. Calling
  // Index() for an entered lane leaves `begins` valid, because `begins` points to a lane that has
  // not been entered.
  for (auto begins = index_.lower_bound(from);; --limit) {
    while (begins != index_.end() && (next.empty() || begins->first < next.front().place)) {
      ++principals_looked_at_;
      Lane& lane = *begins->second.lane;
      next.push_back({begins->first, &lane, lane.order.begin(), {}});
      std::push_heap(next.begin(), next.end());
      ++begins;
    }
    if (next.empty()) return std::nullopt;
    if (limit == 0) return next.front().place;
    std::pop_heap(next.begin(), next.end());
    Next& now = next.back();
    ++looked_at_;
    QueueEntry& entry = now.entry->second;
    const std::optional<absl::Duration> estimate = entry.estimate;
    visit(entry, before);
    if (entry.estimate != estimate) {
      const std::optional<absl::Duration> changed = std::exchange(entry.estimate, estimate);
      now.entry = Estimate(*now.lane, now.entry, changed);
    }
    const QueueSum own = internal::SumOf(now.entry->second);
    before += own;
    now.before += own;
    if (++now.entry == now.lane->order.end()) {
      next.pop_back();
    } else {
      now.place = PlaceIn(*now.lane, now.entry->first, now.before);
      std::push_heap(next.begin(), next.end());
    }
  }
}

internal::QueueCut JobQueue::CutAt(const Lane& lane, const Place& place) {
  return lane.order.Cut(
      [&](const Key& key, const QueueSum& before) { return PlaceIn(lane, key, before) < place; });
}

JobQueue::Place JobQueue::PlaceOf(const EntryPlace& entry) const {
  const Lane& lane = entry.lane->second;
  const internal::QueueCut cut =
      lane.order.Cut([&](const Key& key, const QueueSum&) { return key < entry.key; });
  return PlaceIn(lane, entry.key, cut.before);
}

QueueSum JobQueue::SumBefore(const Place& place) const {
  QueueSum divided;
  QueueSum sum = index_.Before(
      place, [&](const Lane& lane) { divided += CutAt(lane, place).before; },
      principals_looked_at_);
  sum += divided;
  return sum;
}

void JobQueue::Index(Lane& lane) {
  if (lane.indexed.has_value()) index_.erase(*lane.indexed);
  lane.indexed.reset();
  if (lane.order.empty()) return;
  const auto last = lane.order.rbegin();
  const QueueSum sum = lane.order.Sum();
  QueueSum before = sum;
  before -= internal::SumOf(last->second);
  lane.indexed = PlaceIn(lane, lane.order.begin()->first, {});
  index_.insert({*lane.indexed, {&lane, PlaceIn(lane, last->first, before), sum}});
}

JobQueue::Tree::iterator JobQueue::Estimate(Lane& lane, Tree::iterator place,
                                            std::optional<absl::Duration> estimate) {
  const Key key = place->first;
  QueueEntry entry = std::move(place->second);
  // The tree updates its sums only when an entry is inserted, so erase the entry and insert it
  // again with the new estimate.
  lane.order.erase(place);
  QueueSum& of_model = models_[entry.model];
  of_model -= internal::SumOf(entry);
  entry.estimate = estimate;
  of_model += internal::SumOf(entry);
  const auto inserted = lane.order.insert({key, std::move(entry)}).first;
  Index(lane);
  return inserted;
}

QueueEntry JobQueue::Take(const EntryPlace& place) {
  const auto [owner, key] = place;  // a copy, because `place` is erased with the entry
  Lane& lane = owner->second;
  const auto found = lane.order.find(key);
  QueueEntry entry = std::move(found->second);
  lane.order.erase(found);
  places_.erase(entry.job);
  const auto model = models_.find(entry.model);
  model->second -= internal::SumOf(entry);
  if (model->second.jobs == 0) models_.erase(model);
  const auto ready = lane.ready.find(entry.model);
  if (ready != lane.ready.end()) {
    ready->second.erase(key);
    if (ready->second.empty()) lane.ready.erase(ready);
  }
  Index(lane);
  if (lane.order.empty()) lanes_.erase(owner);
  return entry;
}

}  // namespace wan::server
