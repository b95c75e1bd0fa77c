// Decides which job runs next: by priority, then by age.
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
  uint64_t age = 0;   // order of acceptance; the lower runs first among equal priorities
  bool ready = true;  // false: the entry counts and keeps its place, but is not taken yet
  // The work of the job's plan, for estimates; null while unknown.
  std::shared_ptr<const PlannedWork> work;
  // How long the job will take, as last estimated; nullopt while unknown.
  std::optional<absl::Duration> estimate;
  // The latest position that the job's watchers were told.
  int announced_position = 0;
};

// The sums over a part of the queue. Durations add up exactly, in any order.
struct QueueSum {
  int jobs = 0;
  int unknown = 0;          // jobs without an estimate
  absl::Duration estimate;  // of the others

  QueueSum& operator+=(const QueueSum& other);
};

namespace internal {

using QueueKey = std::pair<int, uint64_t>;  // (-priority, age)

QueueSum SumOf(const QueueEntry& entry);

// A policy of libstdc++'s policy-based trees: keeps in every node of the queue's tree the sum of
// the nodes below it. The tree calls it whenever the nodes below one have changed.
template <typename ConstNode, typename Node, typename Compare, typename Allocator>
class QueueSumUpdate {
 public:
  using metadata_type = QueueSum;

  // Returns the sum of all entries before `key`, in as many steps as the tree is high.
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
    // The tree returns its metadata as const, although the policy must write it.
    const_cast<QueueSum&>(node.get_metadata()) = sum;
  }

 private:
  virtual ConstNode node_begin() const = 0;
  virtual ConstNode node_end() const = 0;
};

}  // namespace internal

// Not thread-safe: JobTable guards it with the same lock as the jobs' states. The time of a call
// grows with the logarithm of the queue's length, unless its comment says otherwise.
class JobQueue {
 public:
  explicit JobQueue(int capacity) : capacity_(capacity) {}

  bool Full() const { return size() >= capacity_; }
  int capacity() const { return capacity_; }
  int size() const { return static_cast<int>(order_.size()); }

  // Adds a job that is not in the queue. Never fails, even if the queue is full: a job that was
  // accepted once always has a place. Returns the sum of the jobs before it, whose number is its
  // position, and sets `announced_position` to that.
  QueueSum Add(QueueEntry entry);

  // Sets `ready` of a job in the queue.
  void MarkReady(const std::string& job);

  // Does nothing if the job is not in the queue.
  void Remove(const std::string& job);

  // Removes and returns the first ready entry whose model `runnable` accepts; nullopt if there is
  // none. `runnable` is called once for each model that has a ready entry.
  std::optional<QueueEntry> TakeFirst(const std::function<bool(const std::string&)>& runnable);

  std::optional<int> Position(const std::string& job) const;

  // The sum of the jobs before this one; nothing if it is not in the queue.
  std::optional<QueueSum> Before(const std::string& job) const;
  // The sum of the jobs before one that would be added with this priority.
  QueueSum BeforeNew(int priority) const;

  // The sum of the jobs of each model that has any.
  const std::map<std::string, QueueSum>& models() const { return models_; }

  // A place in the queue, which stays valid whatever happens to the entry that stood there.
  using Place = internal::QueueKey;
  // The place before all entries.
  static Place Front();
  // The place directly behind the entry with this priority and age, whether it exists or not.
  static Place Behind(int priority, uint64_t age) { return {-priority, age + 1}; }

  // Calls `visit` for up to `limit` entries from `from` on, in the order in which they run, with
  // the sum of those before each. `visit` may change `estimate` and `announced_position`, and
  // nothing else. Returns the place at which to continue; nullopt at the end of the queue.
  std::optional<Place> Visit(
      const Place& from, int limit,
      const std::function<void(QueueEntry& entry, const QueueSum& before)>& visit);

  // The number of entries that all calls together have looked at. Tests bound with it the time that
  // a call holds the lock.
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
