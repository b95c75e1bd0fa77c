// Lets the ranks of a group agree on where they end a forward.
#pragma once

#include <cstdint>
#include <stop_token>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"

namespace wan {

// If only one rank left a forward, the other ranks would wait for it forever in their next
// exchange. So all ranks ask this object at the same numbered points, and the rank that arrives at
// a point first decides for all of them. No rank waits for another. Thread-safe.
class Agreement {
 public:
  // Forgets all decisions and failures, for the next forward. No rank may be inside a forward
  // during the call.
  void Begin(std::stop_token stop);

  // Returns whether the ranks go on after `point`, a number that each rank counts from 0. OK means
  // that the ranks go on. CANCELLED means that a stop was requested before the first rank arrived.
  // Any other status is the failure of a rank.
  absl::Status At(int64_t point);

  // Reports that the calling rank cannot go on. Later calls of At return the failure that was
  // reported first.
  void Fail(const absl::Status& failure);

  // Returns the failure that was reported first; OK if there is none.
  absl::Status failure() const;

 private:
  static constexpr int64_t kNever = INT64_MAX;

  mutable absl::Mutex mutex_;
  std::stop_token stop_ ABSL_GUARDED_BY(mutex_);
  int64_t decided_ ABSL_GUARDED_BY(mutex_) = -1;  // the last point for which there is a decision
  int64_t end_ ABSL_GUARDED_BY(mutex_) = kNever;  // the point at which all ranks stop
  absl::Status failure_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace wan
