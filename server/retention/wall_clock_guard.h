// Detects jumps of the wall clock, after which ages cannot be believed.
#pragma once

#include <cstdint>

#include "absl/time/time.h"
#include "engine/api/clock.h"

namespace wan::server {

// Tells whether ages by the wall clock can be believed. Use it on one thread.
class WallClockGuard {
 public:
  explicit WallClockGuard(Clock& clock);

  // Returns whether old jobs and reports may be removed or given up now. After the wall clock has
  // jumped forward by more than ten minutes, everything looks older than it is: false for a day of
  // the steady clock, or until the wall clock is back.
  bool AgesHold();

 private:
  // The wall clock minus the steady clock.
  absl::Duration Offset() const;

  Clock& clock_;
  absl::Duration trusted_;         // the offset that is believed
  absl::Duration seen_;            // the offset at the latest call
  int64_t believed_at_nanos_ = 0;  // steady clock; the new offset is believed from then on
};

}  // namespace wan::server
