// Decides which job runs next: by priority, then by how much the principals have used, then by age.
#pragma once

#include <cstdint>
#include <ext/pb_ds/assoc_container.hpp>
#include <ext/pb_ds/tree_policy.hpp>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>

#include "absl/time/time.h"
#include "server/jobs/lane_index.h"
#include "server/jobs/queue_place.h"
#include "server/jobs/time_estimator.h"

namespace wan::server {

struct QueueEntry {
  std::string job;
  std::string model;
  int priority = 0;   // entries of higher priority run first
  uint64_t age = 0;   // order in which jobs were accepted; different for every job
  bool ready = true;  // false: the job has a position and counts in sums, but TakeFirst does not
                      // return it yet
  // The work of the job's plan, for estimates; null while unknown.
  std::shared_ptr<const PlannedWork> work;
  // How long the job will take, as last estimated; nullopt while unknown.
  std::optional<absl::Duration> estimate;
  // The position in the job's latest Queued event.
  int announced_position = 0;
  // The job's principal; empty on a server that does not authenticate its callers.
  std::string owner;
};

namespace internal {

using QueueKey = std::pair<int, uint64_t>;  // (-priority, age)

QueueSum SumOf(const QueueEntry& entry);

// The result of cutting a tree of entries at a place.
struct QueueCut {
  QueueSum before;
  std::optional<QueueKey> behind;  // the first entry after the cut
};

// A policy for libstdc++'s policy-based trees: every node of a tree of entries stores the sum of
// its subtree. The tree calls operator() whenever a node's subtree has changed.
template <typename ConstNode, typename Node, typename Compare, typename Allocator>
class QueueSumUpdate {
 public:
  using metadata_type = QueueSum;

  // Returns the sum of all entries.
  QueueSum Sum() const {
    return node_begin() == node_end() ? QueueSum() : node_begin().get_metadata();
  }

  // Cuts the tree before the first entry for which `is_before(key, sum of the entries before it)`
  // is false; the function must be false for all later entries as well. Takes O(log n) for n
  // entries.
  template <typename IsBefore>
  QueueCut Cut(const IsBefore& is_before) const {
    QueueCut cut;
    for (ConstNode node = node_begin(); node != node_end();) {
      QueueSum sum = cut.before;
      const ConstNode left = node.get_l_child();
      if (left != node_end()) sum += left.get_metadata();
      if (is_before((*node)->first, sum)) {
        cut.before = sum;
        cut.before += SumOf((*node)->second);
        node = node.get_r_child();
      } else {
        cut.behind = (*node)->first;
        node = left;
      }
    }
    return cut;
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

// Keeps the waiting jobs in order: jobs of higher priority come first. Within one priority, the
// next job is the oldest one of the principal that has used the least device time. The estimated
// time of a job counts as used while the job runs, so principals take turns however many jobs each
// has. The queue passes over principals whose jobs cannot run now; the use of such a principal does
// not grow meanwhile.
//
// Positions and sums follow this order; they are exact if all estimates are right, no other job
// comes, and every model is ready. The queue reads a principal's use when the principal's first
// entry is added and in RefreshUse, so the order is stable between these calls.
//
// Not thread-safe: LiveJobs guards the queue with the lock of the jobs' states. Unless a function's
// comment says otherwise, the function takes time logarithmic in the queue's length and in the
// number of waiting principals, and linear in the number of principals that have jobs both before
// and after the place in question.
class JobQueue {
 public:
  // Returns the device time that a principal has used, from which the queue's order follows. The
  // queue calls this function only during calls of its own functions.
  using UseOf = std::function<absl::Duration(const std::string& owner)>;
  explicit JobQueue(
      int capacity, UseOf use_of = [](const std::string&) { return absl::ZeroDuration(); })
      : capacity_(capacity), use_of_(std::move(use_of)) {}

  bool Full() const { return size() >= capacity_; }
  int capacity() const { return capacity_; }
  int size() const { return static_cast<int>(places_.size()); }

  // Adds a job that is not in the queue. Never fails, even if the queue is full, because accepted
  // jobs may return to it. Returns the sum of the jobs before the new one, and sets its
  // `announced_position` to their number.
  QueueSum Add(QueueEntry entry);

  // Sets `ready` of the job's entry to true.
  void MarkReady(const std::string& job);

  // Does nothing if the job is not in the queue.
  void Remove(const std::string& job);

  // Reads again how much all waiting principals have used.
  void RefreshUse();

  // Returns whether TakeFirst may take jobs of the model (or principal) of this name.
  using Accepts = std::function<bool(const std::string& name)>;
  static bool AcceptAll(const std::string& /*name*/) { return true; }

  // Removes and returns the first ready entry whose model `runnable` accepts; nullopt if there is
  // none. Passes over the entries of principals that `may_run` refuses. Calls `runnable` at most
  // once for each model that has a ready entry. Looks at one entry for each model of every
  // principal.
  std::optional<QueueEntry> TakeFirst(const Accepts& runnable, const Accepts& may_run = AcceptAll);

  // Returns the entry that TakeFirst would return; null if TakeFirst would return nothing. The
  // pointer is valid until the queue changes.
  const QueueEntry* First(const Accepts& runnable, const Accepts& may_run = AcceptAll);

  std::optional<int> Position(const std::string& job) const;

  // Returns the sum of the jobs before `job`; nothing if `job` is not in the queue.
  std::optional<QueueSum> Before(const std::string& job) const;
  // Returns the sum of the jobs that would come before a new job of this owner and priority.
  QueueSum BeforeNew(const std::string& owner, int priority) const;
  // Returns the sum of the jobs before the n-th job of a principal, where n counts from 1; nothing
  // if the principal has fewer jobs.
  std::optional<QueueSum> BeforeNth(const std::string& owner, int n) const;

  // Returns the sum of the waiting jobs for each model that has any.
  const std::map<std::string, QueueSum>& models() const { return models_; }

  using Place = QueuePlace;
  // Returns the place before all entries.
  static Place Front() { return {std::numeric_limits<int>::min(), -absl::InfiniteDuration(), 0}; }
  // Returns the place of a job; nothing if the job is not in the queue.
  std::optional<Place> PlaceOf(const std::string& job) const;

  // Calls `visit` for up to `limit` entries at and after `from`, in the order in which they will
  // run, with the sum of the entries before each. `visit` may change `estimate` and
  // `announced_position`, and nothing else. Returns the place at which to continue; nullopt at the
  // end of the queue.
  std::optional<Place> Visit(
      const Place& from, int limit,
      const std::function<void(QueueEntry& entry, const QueueSum& before)>& visit);

  // Returns how many entries all calls so far have looked at. Tests use this number to bound the
  // time for which a call holds the lock.
  int64_t looked_at() const { return looked_at_; }
  // Returns how many principals all calls so far have looked at to find the jobs before a place.
  int64_t principals_looked_at() const { return principals_looked_at_; }

 private:
  using Key = internal::QueueKey;
  using Tree = __gnu_pbds::tree<Key, QueueEntry, std::less<Key>, __gnu_pbds::rb_tree_tag,
                                internal::QueueSumUpdate>;

  // The waiting jobs of one principal. A lane has at least one job.
  struct Lane {
    absl::Duration used;
    Tree order;
    // The ready entries; the key is the model.
    std::map<std::string, std::set<Key>> ready;
    // The lane's key in `index_`: the place that its first job had when the lane was indexed;
    // nothing if the lane is not in the index.
    std::optional<Place> indexed;
  };
  using Lanes = std::map<std::string, Lane>;
  struct EntryPlace {
    Lanes::iterator lane;
    Key key;
  };

  static Key KeyOf(const QueueEntry& entry) { return {-entry.priority, entry.age}; }
  // `before` is the sum of the lane's entries before this one.
  static Place PlaceIn(const Lane& lane, const Key& key, const QueueSum& before) {
    return {key.first, lane.used + before.use(), key.second};
  }
  std::optional<EntryPlace> FirstPlace(const Accepts& runnable, const Accepts& may_run);
  static internal::QueueCut CutAt(const Lane& lane, const Place& place);
  // Updates the lane's entry in `index_`. Call Index after every change of the lane's entries,
  // their estimates or `used`, before the order is read.
  void Index(Lane& lane);
  Place PlaceOf(const EntryPlace& entry) const;
  QueueSum SumBefore(const Place& place) const;
  // Changes an entry's estimate and returns the entry's new place in the tree.
  Tree::iterator Estimate(Lane& lane, Tree::iterator place, std::optional<absl::Duration> estimate);
  QueueEntry Take(const EntryPlace& place);

  const int capacity_;
  const UseOf use_of_;
  Lanes lanes_;  // the key is the owner
  internal::LaneIndex<Lane> index_;
  std::unordered_map<std::string, EntryPlace> places_;
  std::map<std::string, QueueSum> models_;
  int64_t looked_at_ = 0;
  mutable int64_t principals_looked_at_ = 0;
};

}  // namespace wan::server
