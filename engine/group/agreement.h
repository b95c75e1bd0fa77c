// Makes the ranks of a group end a forward together.
#pragma once

#include <cstdint>
#include <stop_token>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"

namespace wan {

// If one rank left a forward alone, the others would wait forever in their next exchange. So all
// ranks ask at the same numbered points, and the first rank to arrive at a point decides for all.
// No rank waits. Thread-safe.
class Agreement {
 public:
  // Resets everything: no point is decided and no failure is known. No rank may be inside a
  // forward.
  void Begin(std::stop_token stop);

  // Returns whether the ranks go on after `point`, which each rank counts from 0: OK, CANCELLED if
  // a stop was requested before the first rank arrived, or a rank's failure.
  absl::Status At(int64_t point);

  // Reports that a rank cannot go on. Later calls of At return the first reported failure.
  void Fail(const absl::Status& failure);

  // The first reported failure, or OK.
  absl::Status failure() const;

 private:
  static constexpr int64_t kNever = INT64_MAX;

  mutable absl::Mutex mutex_;
  std::stop_token stop_ ABSL_GUARDED_BY(mutex_);
  int64_t decided_ ABSL_GUARDED_BY(mutex_) = -1;  // last point that is decided
  int64_t end_ ABSL_GUARDED_BY(mutex_) = kNever;  // point at which all ranks stop
  absl::Status failure_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace wan
