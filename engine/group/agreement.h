// Makes the ranks of a group end a forward together.
#pragma once

#include <cstdint>
#include <stop_token>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"

namespace wan {

// A rank that left a forward alone would leave the others waiting in their next exchange. Therefore
// all ranks ask at the same points, which they count, and the first to arrive at a point decides
// for all. No rank waits. Thread-safe.
class Agreement {
 public:
  // Resets: no point is decided, and nothing has failed. No rank may be inside a forward.
  void Begin(std::stop_token stop);

  // Returns whether the ranks go on after `point`, which each rank counts from 0: OK, CANCELLED if
  // a stop was requested when the first rank arrived, or the failure of a rank.
  absl::Status At(int64_t point);

  // Reports that a rank cannot go on. From now on At returns the first reported failure.
  void Fail(const absl::Status& failure);

  // The first failure of a rank, or OK.
  absl::Status failure() const;

 private:
  static constexpr int64_t kNever = INT64_MAX;

  mutable absl::Mutex mutex_;
  std::stop_token stop_ ABSL_GUARDED_BY(mutex_);
  int64_t decided_ ABSL_GUARDED_BY(mutex_) = -1;  // the latest point that is decided
  int64_t end_ ABSL_GUARDED_BY(mutex_) = kNever;  // the point at which all stop
  absl::Status failure_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace wan
