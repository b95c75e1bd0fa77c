// An index of the queue's lanes (a lane has the jobs of one principal); sums up the jobs before a
// place without looking at all lanes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <ext/pb_ds/assoc_container.hpp>
#include <ext/pb_ds/tree_policy.hpp>
#include <functional>

#include "server/jobs/queue_place.h"

namespace wan::server::internal {

// The range of queue places from a lane's first job to the lane's last job. Jobs of other lanes may
// lie within the range.
template <typename Lane>
struct LaneSpan {
  Lane* lane = nullptr;
  QueuePlace last;  // the place of the lane's last job
  QueueSum sum;     // the sum of all jobs of the lane
};

// The totals of the lanes in a subtree of the index.
struct LanesBelow {
  QueuePlace last;  // the greatest `last` of these lanes
  QueueSum sum;
};

// A policy for libstdc++'s policy-based trees: every node of a tree of spans, whose keys are the
// places of the lanes' first jobs, stores the totals of its subtree. The tree calls operator()
// whenever a node's subtree has changed.
template <typename ConstNode, typename Node, typename Compare, typename Allocator>
class LaneSpanUpdate {
 public:
  using metadata_type = LanesBelow;

  // Returns the sum of the lanes whose jobs are all before `place`, and calls `visit(lane)` for
  // each lane that begins before `place` and ends at or after it. Adds the number of lanes looked
  // at to `looked_at`: at most the tree's height for each visited lane, plus the height once.
  template <typename Visit>
  QueueSum Before(const QueuePlace& place, const Visit& visit, int64_t& looked_at) const {
    return Before(node_begin(), place, visit, looked_at);
  }

 protected:
  virtual ~LaneSpanUpdate() = default;

  void operator()(Node node, ConstNode end) const {
    LanesBelow all{(*node)->second.last, (*node)->second.sum};
    for (const Node& child : {node.get_l_child(), node.get_r_child()}) {
      if (child == end) continue;
      all.last = std::max(all.last, child.get_metadata().last);
      all.sum += child.get_metadata().sum;
    }
    // The tree returns its metadata as const, although the policy must write it.
    const_cast<LanesBelow&>(node.get_metadata()) = all;
  }

 private:
  virtual ConstNode node_begin() const = 0;
  virtual ConstNode node_end() const = 0;

  // The recursion is at most as deep as the tree is high.
  template <typename Visit>
  QueueSum Before(ConstNode node, const QueuePlace& place, const Visit& visit,
                  int64_t& looked_at) const {
    if (node == node_end()) return {};
    ++looked_at;
    if (node.get_metadata().last < place) return node.get_metadata().sum;
    QueueSum sum = Before(node.get_l_child(), place, visit, looked_at);
    if (!((*node)->first < place))
      return sum;  // this lane and all to its right begin after the place
    if ((*node)->second.last < place) {
      sum += (*node)->second.sum;
    } else {
      visit(*(*node)->second.lane);
    }
    sum += Before(node.get_r_child(), place, visit, looked_at);
    return sum;
  }
};

// The tree of the spans of all lanes that have jobs. The key is the place of a lane's first job; no
// two keys are equal.
template <typename Lane>
using LaneIndex = __gnu_pbds::tree<QueuePlace, LaneSpan<Lane>, std::less<QueuePlace>,
                                   __gnu_pbds::rb_tree_tag, LaneSpanUpdate>;

}  // namespace wan::server::internal
