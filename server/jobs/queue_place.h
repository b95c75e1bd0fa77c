// What the queue's order compares, and the sums over parts of it.
#pragma once

#include <cstdint>
#include <tuple>

#include "absl/time/time.h"

namespace wan::server {

// The sums over a part of the queue. Durations add up exactly, in any order.
struct QueueSum {
  // What a job without an estimate is taken to use of the device.
  static constexpr absl::Duration kUnknownUse = absl::Minutes(1);

  int jobs = 0;
  int unknown = 0;          // jobs without an estimate
  absl::Duration estimate;  // of the others

  // What the jobs will use of the device.
  absl::Duration use() const { return estimate + unknown * kUnknownUse; }

  QueueSum& operator+=(const QueueSum& other);
  QueueSum& operator-=(const QueueSum& other);
};

// A place in the queue. It stays valid whatever happens to the entry that stood there, but the
// order around it may change.
struct QueuePlace {
  int negated_priority = 0;
  absl::Duration used;  // what the principal will have used when it is the job's turn
  uint64_t age = 0;

  friend bool operator==(const QueuePlace&, const QueuePlace&) = default;
  friend bool operator<(const QueuePlace& a, const QueuePlace& b) {
    return std::tie(a.negated_priority, a.used, a.age) <
           std::tie(b.negated_priority, b.used, b.age);
  }
};

}  // namespace wan::server
