// Waits between two tries.
#pragma once

#include <stop_token>

#include "absl/time/time.h"
#include "engine/api/clock.h"

namespace wan::server {

// Waits until the time has passed on the steady clock, or until `stop` is requested; returns
// whether the time has passed.
bool Pause(Clock& clock, absl::Duration time, const std::stop_token& stop);

// Growing pauses: about `first`, then about twice as long each time, up to `most`. A random half of
// each pause keeps many servers from trying at the same moment. Not thread-safe.
class BackOff {
 public:
  BackOff(absl::Duration first, absl::Duration most) : next_(first), most_(most) {}
  absl::Duration Next();

 private:
  absl::Duration next_;
  absl::Duration most_;
};

}  // namespace wan::server
