// Which job runs next: by priority, then by age.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/api/generation.h"

namespace wan::server {

struct QueueEntry {
  std::string job;
  std::string model;
  int priority = 0;   // higher runs first
  uint64_t age = 0;   // order of acceptance: lower runs first among equals
  bool ready = true;  // may be taken; it counts, and keeps its place, before that
  // What the job's plan holds, for estimates; null while unknown.
  std::shared_ptr<const std::vector<StagePlan>> stages;
};

// Not thread-safe: JobTable guards it together with the jobs' states.
class JobQueue {
 public:
  explicit JobQueue(int capacity) : capacity_(capacity) {}

  bool Full() const { return static_cast<int>(order_.size()) >= capacity_; }
  int capacity() const { return capacity_; }
  int size() const { return static_cast<int>(order_.size()); }

  // Also beyond the capacity: a job that was accepted once always has a place. The job must not be
  // in the queue. Returns its position, 0 for the next.
  int Add(QueueEntry entry);

  // Lets a job be taken.
  void MarkReady(const std::string& job);

  // Nothing happens if the job is not in the queue.
  void Remove(const std::string& job);

  // Takes the first ready entry that `runnable` accepts.
  std::optional<QueueEntry> TakeFirst(const std::function<bool(const QueueEntry&)>& runnable);

  std::optional<int> Position(const std::string& job) const;

  // In the order they run.
  std::vector<const QueueEntry*> Entries() const;

 private:
  using Key = std::pair<int, uint64_t>;  // (-priority, age)

  const int capacity_;
  std::map<Key, QueueEntry> order_;
  std::unordered_map<std::string, Key> keys_;
};

}  // namespace wan::server
