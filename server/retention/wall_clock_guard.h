// Tells whether ages that the wall clock gives can be believed.
#pragma once

#include <cstdint>

#include "absl/time/time.h"
#include "engine/api/clock.h"

namespace wan::server {

// Tells how far an age that the wall clock gives can be believed. For one thread.
class WallClockGuard {
 public:
  explicit WallClockGuard(Clock& clock);

  // Returns whether what is old may be removed or given up now. After the wall clock has jumped
  // forward by more than ten minutes, everything looks older than it is: for a day of the clock
  // that never jumps, or until the wall clock is back, they may not.
  bool AgesHold();

 private:
  // The wall clock minus the clock that never jumps.
  absl::Duration Offset() const;

  Clock& clock_;
  absl::Duration trusted_;         // the offset that is believed
  absl::Duration seen_;            // the one of the latest call
  int64_t believed_at_nanos_ = 0;  // of the clock that never jumps; a jump is believed from then on
};

}  // namespace wan::server
