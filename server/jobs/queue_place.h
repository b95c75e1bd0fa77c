// The places in the queue's order, and sums over parts of the queue.
#pragma once

#include <cstdint>
#include <tuple>

#include "absl/time/time.h"

namespace wan::server {

// Totals of a part of the queue. absl::Duration adds exactly, so the order of additions does not
// matter.
struct QueueSum {
  // The device time that use() counts for each job without an estimate.
  static constexpr absl::Duration kUnknownUse = absl::Minutes(1);

  int jobs = 0;
  int unknown = 0;          // number of jobs without an estimate
  absl::Duration estimate;  // sum of the estimates of the other jobs

  // Returns how much device time the jobs are expected to use.
  absl::Duration use() const { return estimate + unknown * kUnknownUse; }

  QueueSum& operator+=(const QueueSum& other);
  QueueSum& operator-=(const QueueSum& other);
};

// A position in the queue's order. A place stays valid when the entry there is removed, but other
// entries may move past it.
struct QueuePlace {
  int negated_priority = 0;
  absl::Duration used;  // how much the principal will have used when the job's turn comes
  uint64_t age = 0;

  friend bool operator==(const QueuePlace&, const QueuePlace&) = default;
  friend bool operator<(const QueuePlace& a, const QueuePlace& b) {
    return std::tie(a.negated_priority, a.used, a.age) <
           std::tie(b.negated_priority, b.used, b.age);
  }
};

}  // namespace wan::server
