// Lets the ranks of a group end together.
#pragma once

#include <cstdint>
#include <stop_token>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"

namespace wan {

// A rank that left a forward by itself would leave the others waiting in their next exchange. So
// all ranks ask at the same points, which they count, and the first to arrive at a point decides
// for all: nobody waits for anybody. Thread-safe.
class Agreement {
 public:
  // Begins anew: no point is decided, and nothing has failed. No rank may be inside a forward.
  void Begin(std::stop_token stop);

  // Returns whether the ranks go on after `point`, which each rank counts from 0: OK, or CANCELLED
  // if a stop was requested when the first of them arrived, or what a rank failed with.
  absl::Status At(int64_t point);

  // A rank cannot go on. From now on At returns `failure`. The first failure counts.
  void Fail(const absl::Status& failure);

  // What a rank failed with, or OK.
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
