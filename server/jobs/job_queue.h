// Decides which job runs next: by priority, then by what the principals have used, then by age.
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
  int priority = 0;   // higher runs first
  uint64_t age = 0;   // order of acceptance, different for every job
  bool ready = true;  // false: the entry counts and keeps its place, but is not taken yet
  // The work of the job's plan, for estimates; null while unknown.
  std::shared_ptr<const PlannedWork> work;
  // How long the job will take, as last estimated; nullopt while unknown.
  std::optional<absl::Duration> estimate;
  // The latest position that the job's watchers were told.
  int announced_position = 0;
  // The principal; empty on a server that does not authenticate its callers.
  std::string owner;
};

namespace internal {

using QueueKey = std::pair<int, uint64_t>;  // (-priority, age)

QueueSum SumOf(const QueueEntry& entry);

// The place at which a tree of entries is cut in two.
struct QueueCut {
  QueueSum before;
  std::optional<QueueKey> behind;  // the first entry behind the cut
};

// A policy of libstdc++'s policy-based trees: keeps in every node of a tree of entries the sum of
// the nodes below it. The tree calls it whenever the nodes below one have changed.
template <typename ConstNode, typename Node, typename Compare, typename Allocator>
class QueueSumUpdate {
 public:
  using metadata_type = QueueSum;

  // The sum of all entries.
  QueueSum Sum() const {
    return node_begin() == node_end() ? QueueSum() : node_begin().get_metadata();
  }

  // Cuts the tree before the first entry that `is_before(key, sum of the entries before it)`
  // refuses; it must refuse all entries behind that one as well. Takes as many steps as the tree is
  // high.
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

// The order of the queue: jobs of higher priority come first. Among those of one priority the next
// job is the oldest one of the principal that has used the least, and while it runs that principal
// has used what the job is estimated to take. So the principals take turns, however many jobs each
// of them has. Others go ahead of a principal whose jobs cannot run now; it keeps its claim.
//
// Positions and sums are those of this order, exactly, if all jobs take as long as they are
// estimated, no other job comes, and every model is ready. The use of a principal is read when it
// gets its first entry and when RefreshUse is called, so that the order is stable between these
// calls.
//
// Not thread-safe: LiveJobs guards it with the same lock as the jobs' states. The time of a call
// grows with the logarithms of the queue's length and of the number of principals that wait, and
// with the number of those that have jobs both before and behind the place that the call is about,
// unless its comment says otherwise.
class JobQueue {
 public:
  // Returns a principal's use of the device, in the sense by which the queue is fair. Called while
  // the queue is called.
  using UseOf = std::function<absl::Duration(const std::string& owner)>;
  explicit JobQueue(
      int capacity, UseOf use_of = [](const std::string&) { return absl::ZeroDuration(); })
      : capacity_(capacity), use_of_(std::move(use_of)) {}

  bool Full() const { return size() >= capacity_; }
  int capacity() const { return capacity_; }
  int size() const { return static_cast<int>(places_.size()); }

  // Adds a job that is not in the queue. Never fails, even if the queue is full: a job that was
  // accepted once always has a place. Returns the sum of the jobs before it, whose number is its
  // position, and sets `announced_position` to that.
  QueueSum Add(QueueEntry entry);

  // Sets `ready` of a job in the queue.
  void MarkReady(const std::string& job);

  // Does nothing if the job is not in the queue.
  void Remove(const std::string& job);

  // Reads anew what the principals have used. Looks at all principals that wait.
  void RefreshUse();

  // Whether the jobs of a model, or of a principal, may be taken.
  using Accepts = std::function<bool(const std::string& name)>;
  static bool AcceptAll(const std::string& /*name*/) { return true; }

  // Removes and returns the first ready entry whose model `runnable` accepts; nullopt if there is
  // none. `runnable` is called at most once for each model that has a ready entry. Entries of
  // principals that `may_run` refuses keep their places. Looks at one entry for each model of every
  // principal.
  std::optional<QueueEntry> TakeFirst(const Accepts& runnable, const Accepts& may_run = AcceptAll);

  // The entry that TakeFirst would return; null if there is none. Valid until the queue changes.
  const QueueEntry* First(const Accepts& runnable, const Accepts& may_run = AcceptAll);

  std::optional<int> Position(const std::string& job) const;

  // The sum of the jobs before this one; nothing if it is not in the queue.
  std::optional<QueueSum> Before(const std::string& job) const;
  // The sum of the jobs before one that would be added.
  QueueSum BeforeNew(const std::string& owner, int priority) const;
  // The sum of the jobs before the n-th one of a principal, from 1 on; nothing if it has fewer.
  std::optional<QueueSum> BeforeNth(const std::string& owner, int n) const;

  // The sum of the jobs of each model that has any.
  const std::map<std::string, QueueSum>& models() const { return models_; }

  using Place = QueuePlace;
  // The place before all entries.
  static Place Front() { return {std::numeric_limits<int>::min(), -absl::InfiniteDuration(), 0}; }
  // The place of a job; nothing if it is not in the queue.
  std::optional<Place> PlaceOf(const std::string& job) const;

  // Calls `visit` for up to `limit` entries from `from` on, in the order in which they run, with
  // the sum of those before each. `visit` may change `estimate` and `announced_position`, and
  // nothing else. Returns the place at which to continue; nullopt at the end of the queue.
  std::optional<Place> Visit(
      const Place& from, int limit,
      const std::function<void(QueueEntry& entry, const QueueSum& before)>& visit);

  // The number of entries that all calls together have looked at. Tests bound with it the time that
  // a call holds the lock.
  int64_t looked_at() const { return looked_at_; }
  // The number of principals that the calls have looked at to find the jobs before a place.
  int64_t principals_looked_at() const { return principals_looked_at_; }

 private:
  using Key = internal::QueueKey;
  using Tree = __gnu_pbds::tree<Key, QueueEntry, std::less<Key>, __gnu_pbds::rb_tree_tag,
                                internal::QueueSumUpdate>;

  // The entries of one principal, which has at least one.
  struct Lane {
    absl::Duration used;
    Tree order;
    // The entries that may be taken, by model.
    std::map<std::string, std::set<Key>> ready;
    // The place of its first job when it was entered in the index; nothing before.
    std::optional<Place> indexed;
  };
  using Lanes = std::map<std::string, Lane>;
  struct EntryPlace {
    Lanes::iterator lane;
    Key key;
  };

  static Key KeyOf(const QueueEntry& entry) { return {-entry.priority, entry.age}; }
  // `before`: the sum of the lane's entries before this one.
  static Place PlaceIn(const Lane& lane, const Key& key, const QueueSum& before) {
    return {key.first, lane.used + before.use(), key.second};
  }
  std::optional<EntryPlace> FirstPlace(const Accepts& runnable, const Accepts& may_run);
  static internal::QueueCut CutAt(const Lane& lane, const Place& place);
  // Call it after every change of a lane's entries, their estimates or its use, before the order is
  // read.
  void Index(Lane& lane);
  Place PlaceOf(const EntryPlace& entry) const;
  QueueSum SumBefore(const Place& place) const;
  // Changes an entry's estimate and returns its new place in the tree.
  Tree::iterator Estimate(Lane& lane, Tree::iterator place, std::optional<absl::Duration> estimate);
  QueueEntry Take(const EntryPlace& place);

  const int capacity_;
  const UseOf use_of_;
  Lanes lanes_;  // by owner
  internal::LaneIndex<Lane> index_;
  std::unordered_map<std::string, EntryPlace> places_;
  std::map<std::string, QueueSum> models_;
  int64_t looked_at_ = 0;
  mutable int64_t principals_looked_at_ = 0;
};

}  // namespace wan::server
