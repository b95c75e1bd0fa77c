#include "server/jobs/job_queue.h"

#include <limits>

namespace wan::server {

QueueSum& QueueSum::operator+=(const QueueSum& other) {
  jobs += other.jobs;
  unknown += other.unknown;
  estimate += other.estimate;
  return *this;
}

namespace internal {

QueueSum SumOf(const QueueEntry& entry) {
  return {1, entry.estimate.has_value() ? 0 : 1, entry.estimate.value_or(absl::ZeroDuration())};
}

}  // namespace internal

QueueSum JobQueue::Add(QueueEntry entry) {
  const Key key = KeyOf(entry);
  keys_.emplace(entry.job, key);
  if (entry.ready) ready_[entry.model].insert(key);
  Insert(std::move(entry));
  const QueueSum before = order_.SumBefore(key);
  order_.find(key)->second.announced_position = before.jobs;
  return before;
}

void JobQueue::MarkReady(const std::string& job) {
  const auto found = keys_.find(job);
  if (found == keys_.end()) return;
  QueueEntry& entry = order_.find(found->second)->second;
  entry.ready = true;
  ready_[entry.model].insert(found->second);
}

void JobQueue::Remove(const std::string& job) {
  const auto found = keys_.find(job);
  if (found == keys_.end()) return;
  const QueueEntry entry = Take(found->second);
  keys_.erase(entry.job);
}

std::optional<QueueEntry> JobQueue::TakeFirst(
    const std::function<bool(const std::string&)>& runnable) {
  std::optional<Key> first;
  for (const auto& [model, keys] : ready_) {
    ++looked_at_;
    const Key& key = *keys.begin();
    if ((!first.has_value() || key < *first) && runnable(model)) first = key;
  }
  if (!first.has_value()) return std::nullopt;
  QueueEntry entry = Take(*first);
  keys_.erase(entry.job);
  return entry;
}

std::optional<int> JobQueue::Position(const std::string& job) const {
  const auto found = keys_.find(job);
  if (found == keys_.end()) return std::nullopt;
  return order_.SumBefore(found->second).jobs;
}

std::optional<QueueSum> JobQueue::Before(const std::string& job) const {
  const auto found = keys_.find(job);
  if (found == keys_.end()) return std::nullopt;
  return order_.SumBefore(found->second);
}

QueueSum JobQueue::BeforeNew(int priority) const {
  return order_.SumBefore({-priority, std::numeric_limits<uint64_t>::max()});
}

JobQueue::Place JobQueue::Front() { return {std::numeric_limits<int>::min(), 0}; }

std::optional<JobQueue::Place> JobQueue::Visit(
    const Place& from, int limit,
    const std::function<void(QueueEntry& entry, const QueueSum& before)>& visit) {
  QueueSum before = order_.SumBefore(from);
  for (auto place = order_.lower_bound(from); place != order_.end(); ++place) {
    if (limit-- == 0) return place->first;
    ++looked_at_;
    const Key key = place->first;
    const std::optional<absl::Duration> estimate = place->second.estimate;
    visit(place->second, before);
    if (place->second.estimate != estimate) {
      // The tree updates its sums only when an entry is inserted, so insert it anew.
      QueueEntry changed = place->second;
      place->second.estimate = estimate;
      Take(key);
      if (changed.ready) ready_[changed.model].insert(key);
      Insert(std::move(changed));
      place = order_.find(key);
    }
    before += internal::SumOf(place->second);
  }
  return std::nullopt;
}

void JobQueue::Insert(QueueEntry entry) {
  models_[entry.model] += internal::SumOf(entry);
  const Key key = KeyOf(entry);
  order_.insert({key, std::move(entry)});
}

QueueEntry JobQueue::Take(const Key& key) {
  const auto place = order_.find(key);
  QueueEntry entry = std::move(place->second);
  order_.erase(place);
  const QueueSum gone = internal::SumOf(entry);
  const auto model = models_.find(entry.model);
  model->second += {-gone.jobs, -gone.unknown, -gone.estimate};
  if (model->second.jobs == 0) models_.erase(model);
  const auto ready = ready_.find(entry.model);
  if (ready != ready_.end()) {
    ready->second.erase(key);
    if (ready->second.empty()) ready_.erase(ready);
  }
  return entry;
}

}  // namespace wan::server
