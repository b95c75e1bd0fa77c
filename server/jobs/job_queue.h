// Which job runs next: by priority, then by age.
#pragma once

#include <cstdint>
#include <ext/pb_ds/assoc_container.hpp>
#include <ext/pb_ds/tree_policy.hpp>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>

#include "absl/time/time.h"
#include "server/jobs/time_estimator.h"

namespace wan::server {

struct QueueEntry {
  std::string job;
  std::string model;
  int priority = 0;   // higher runs first
  uint64_t age = 0;   // order of acceptance: lower runs first among equals
  bool ready = true;  // may be taken; it counts, and keeps its place, before that
  // What the job's plan holds, for estimates; null while unknown.
  std::shared_ptr<const PlannedWork> work;
  // How long the job will take, when it was last estimated; nothing while unknown.
  std::optional<absl::Duration> estimate;
  // The place that the job's watchers heard of last.
  int announced_position = 0;
};

// What a part of the queue adds up to. Durations add up exactly, in any order.
struct QueueSum {
  int jobs = 0;
  int unknown = 0;          // jobs without an estimate
  absl::Duration estimate;  // of the others

  QueueSum& operator+=(const QueueSum& other);
};

namespace internal {

using QueueKey = std::pair<int, uint64_t>;  // (-priority, age)

QueueSum SumOf(const QueueEntry& entry);

// Keeps in every node of the queue's tree the sum of the nodes below it: a policy of libstdc++'s
// policy-based trees, which call it whenever the nodes below one have changed.
template <typename ConstNode, typename Node, typename Compare, typename Allocator>
class QueueSumUpdate {
 public:
  using metadata_type = QueueSum;

  // The sum of all entries before `key`, in as many steps as the tree is high.
  QueueSum SumBefore(const QueueKey& key) const {
    QueueSum sum;
    for (ConstNode node = node_begin(); node != node_end();) {
      if ((*node)->first < key) {
        const ConstNode left = node.get_l_child();
        if (left != node_end()) sum += left.get_metadata();
        sum += SumOf((*node)->second);
        node = node.get_r_child();
      } else {
        node = node.get_l_child();
      }
    }
    return sum;
  }

 protected:
  virtual ~QueueSumUpdate() = default;

  void operator()(Node node, ConstNode end) const {
    QueueSum sum = SumOf((*node)->second);
    for (const Node& child : {node.get_l_child(), node.get_r_child()}) {
      if (child != end) sum += child.get_metadata();
    }
    // The tree hands its metadata out as const, and expects the policy to write it all the same.
    const_cast<QueueSum&>(node.get_metadata()) = sum;
  }

 private:
  virtual ConstNode node_begin() const = 0;
  virtual ConstNode node_end() const = 0;
};

}  // namespace internal

// Not thread-safe: JobTable guards it together with the jobs' states. No call takes longer than the
// logarithm of the queue's length, except where it says so.
class JobQueue {
 public:
  explicit JobQueue(int capacity) : capacity_(capacity) {}

  bool Full() const { return size() >= capacity_; }
  int capacity() const { return capacity_; }
  int size() const { return static_cast<int>(order_.size()); }

  // Also beyond the capacity: a job that was accepted once always has a place. The job must not be
  // in the queue. Returns the sum of the jobs before it, the number of which is its position, and
  // takes that as announced.
  QueueSum Add(QueueEntry entry);

  // Lets a job be taken.
  void MarkReady(const std::string& job);

  // Nothing happens if the job is not in the queue.
  void Remove(const std::string& job);

  // Takes the first ready entry whose model `runnable` accepts, which is asked once for each model
  // that has a ready entry.
  std::optional<QueueEntry> TakeFirst(const std::function<bool(const std::string&)>& runnable);

  std::optional<int> Position(const std::string& job) const;

  // The sum of the jobs of each model that has some.
  const std::map<std::string, QueueSum>& models() const { return models_; }

  // A place in the queue, which stays valid whatever happens to the entry that stood there.
  using Place = internal::QueueKey;
  // Before all entries.
  static Place Front();
  // Directly behind the entry with this priority and age, whether it is there or not.
  static Place Behind(int priority, uint64_t age) { return {-priority, age + 1}; }

  // Shows up to `limit` entries from `from` on, in the order they run, with the sum of those before
  // each. `visit` may change `estimate` and `announced_position`, and nothing else. Returns where
  // to go on; nothing at the end of the queue.
  std::optional<Place> Visit(
      const Place& from, int limit,
      const std::function<void(QueueEntry& entry, const QueueSum& before)>& visit);

  // Entries that calls have looked at, ever: what tests hold against the time under a lock.
  int64_t looked_at() const { return looked_at_; }

 private:
  using Key = internal::QueueKey;
  using Tree = __gnu_pbds::tree<Key, QueueEntry, std::less<Key>, __gnu_pbds::rb_tree_tag,
                                internal::QueueSumUpdate>;

  static Key KeyOf(const QueueEntry& entry) { return {-entry.priority, entry.age}; }
  void Insert(QueueEntry entry);
  QueueEntry Take(const Key& key);

  const int capacity_;
  Tree order_;
  std::unordered_map<std::string, Key> keys_;
  std::map<std::string, QueueSum> models_;
  // The entries that may be taken, by model.
  std::map<std::string, std::set<Key>> ready_;
  int64_t looked_at_ = 0;
};

}  // namespace wan::server
