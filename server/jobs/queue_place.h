// The keys that the queue's order compares, and the sums over parts of the queue.
#pragma once

#include <cstdint>
#include <tuple>

#include "absl/time/time.h"

namespace wan::server {

// The sums over a part of the queue. Durations add up exactly, in any order.
struct QueueSum {
  // Assumed device time of a job without an estimate.
  static constexpr absl::Duration kUnknownUse = absl::Minutes(1);

  int jobs = 0;
  int unknown = 0;          // jobs without an estimate
  absl::Duration estimate;  // of the others

  // The device time that the jobs will use.
  absl::Duration use() const { return estimate + unknown * kUnknownUse; }

  QueueSum& operator+=(const QueueSum& other);
  QueueSum& operator-=(const QueueSum& other);
};

// A place in the queue. It stays valid whatever happens to the entry that stood there, but the
// order around it may change.
struct QueuePlace {
  int negated_priority = 0;
  absl::Duration used;  // the principal's use when the job's turn comes
  uint64_t age = 0;

  friend bool operator==(const QueuePlace&, const QueuePlace&) = default;
  friend bool operator<(const QueuePlace& a, const QueuePlace& b) {
    return std::tie(a.negated_priority, a.used, a.age) <
           std::tie(b.negated_priority, b.used, b.age);
  }
};

}  // namespace wan::server
