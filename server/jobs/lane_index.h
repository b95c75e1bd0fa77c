// Finds the lanes of the queue that a place in its order concerns, without looking at all of them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <ext/pb_ds/assoc_container.hpp>
#include <ext/pb_ds/tree_policy.hpp>
#include <functional>

#include "server/jobs/queue_place.h"

namespace wan::server::internal {

// The part of the queue's order that a lane (the jobs of one principal) covers. Other lanes' jobs
// lie between its own.
template <typename Lane>
struct LaneSpan {
  Lane* lane = nullptr;
  QueuePlace last;  // of its last job
  QueueSum sum;     // of all its jobs
};

// The sums over a part of the index.
struct LanesBelow {
  QueuePlace last;  // the latest of the lanes
  QueueSum sum;
};

// A policy of libstdc++'s policy-based trees: keeps in every node of a tree of spans, by the places
// of the lanes' first jobs, the latest last place and the sum of the spans below it. The tree calls
// it whenever the nodes below one have changed.
template <typename ConstNode, typename Node, typename Compare, typename Allocator>
class LaneSpanUpdate {
 public:
  using metadata_type = LanesBelow;

  // Returns the sum of the lanes that lie before `place` as a whole, and calls `visit(lane)` for
  // those that have jobs on both sides of it or whose last job stands there. Adds the number of
  // lanes it looks at to `looked_at`: for each that it visits as many as the tree is high, and as
  // many once more.
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

  // Goes as deep as the tree is high.
  template <typename Visit>
  QueueSum Before(ConstNode node, const QueuePlace& place, const Visit& visit,
                  int64_t& looked_at) const {
    if (node == node_end()) return {};
    ++looked_at;
    if (node.get_metadata().last < place) return node.get_metadata().sum;
    QueueSum sum = Before(node.get_l_child(), place, visit, looked_at);
    if (!((*node)->first < place))
      return sum;  // this lane begins after the place, as do all on
                   // the right
    if ((*node)->second.last < place) {
      sum += (*node)->second.sum;
    } else {
      visit(*(*node)->second.lane);
    }
    sum += Before(node.get_r_child(), place, visit, looked_at);
    return sum;
  }
};

// The spans of lanes that have jobs, by the places of their first jobs, which all differ.
template <typename Lane>
using LaneIndex = __gnu_pbds::tree<QueuePlace, LaneSpan<Lane>, std::less<QueuePlace>,
                                   __gnu_pbds::rb_tree_tag, LaneSpanUpdate>;

}  // namespace wan::server::internal
