// Detects jumps of the wall clock, after which the ages of jobs cannot be trusted.
#pragma once

#include <cstdint>

#include "absl/time/time.h"
#include "engine/api/clock.h"

namespace wan::server {

// Use the guard on one thread only.
class WallClockGuard {
 public:
  explicit WallClockGuard(Clock& clock);

  // Returns whether ages that are measured by the wall clock can be trusted. Returns false when the
  // clock has jumped forward by more than ten minutes, which makes everything look older: for a day
  // of the steady clock, or until the wall clock is set back.
  bool AgesHold();

 private:
  // Returns the wall clock's time minus the steady clock's.
  absl::Duration Offset() const;

  Clock& clock_;
  absl::Duration trusted_;  // the offset that is trusted
  absl::Duration seen_;     // the offset at the latest call of AgesHold
  // Time of the steady clock from which on the new offset is trusted.
  int64_t believed_at_nanos_ = 0;
};

}  // namespace wan::server
