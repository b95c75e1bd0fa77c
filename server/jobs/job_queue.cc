#include "server/jobs/job_queue.h"

#include <iterator>

namespace wan::server {

int JobQueue::Add(QueueEntry entry) {
  const Key key(-entry.priority, entry.age);
  keys_.emplace(entry.job, key);
  const auto added = order_.emplace(key, std::move(entry)).first;
  return static_cast<int>(std::distance(order_.begin(), added));
}

void JobQueue::MarkReady(const std::string& job) {
  const auto found = keys_.find(job);
  if (found != keys_.end()) order_.at(found->second).ready = true;
}

void JobQueue::Remove(const std::string& job) {
  const auto found = keys_.find(job);
  if (found == keys_.end()) return;
  order_.erase(found->second);
  keys_.erase(found);
}

std::optional<QueueEntry> JobQueue::TakeFirst(
    const std::function<bool(const QueueEntry&)>& runnable) {
  for (auto place = order_.begin(); place != order_.end(); ++place) {
    if (!place->second.ready || !runnable(place->second)) continue;
    QueueEntry entry = std::move(place->second);
    order_.erase(place);
    keys_.erase(entry.job);
    return entry;
  }
  return std::nullopt;
}

std::optional<int> JobQueue::Position(const std::string& job) const {
  const auto found = keys_.find(job);
  if (found == keys_.end()) return std::nullopt;
  return static_cast<int>(std::distance(order_.begin(), order_.find(found->second)));
}

std::vector<const QueueEntry*> JobQueue::Entries() const {
  std::vector<const QueueEntry*> entries;
  for (const auto& [key, entry] : order_) entries.push_back(&entry);
  return entries;
}

}  // namespace wan::server
