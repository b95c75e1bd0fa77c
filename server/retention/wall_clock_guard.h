// Detects jumps of the wall clock, after which ages of jobs cannot be trusted.
#pragma once

#include <cstdint>

#include "absl/time/time.h"
#include "engine/api/clock.h"

namespace wan::server {

// Use it on one thread.
class WallClockGuard {
 public:
  explicit WallClockGuard(Clock& clock);

  // Returns whether ages by the wall clock can be trusted. False after the clock has jumped forward
  // by more than ten minutes, which makes everything look older: for a day of the steady clock, or
  // until the wall clock is set back.
  bool AgesHold();

 private:
  // The wall clock minus the steady clock.
  absl::Duration Offset() const;

  Clock& clock_;
  absl::Duration trusted_;         // the trusted offset
  absl::Duration seen_;            // the offset at the latest call
  int64_t believed_at_nanos_ = 0;  // steady clock; the new offset is trusted from then on
};

}  // namespace wan::server
