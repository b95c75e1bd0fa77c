// Time is an injected interface, so that tests of queues, deadlines and reports never wait.
#pragma once

#include <cstdint>

#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace wan {

// Every method may be called by any thread at any time.
class Clock {
 public:
  virtual ~Clock() = default;

  // Returns the wall-clock time. Use it for timestamps that people and other machines read; it may
  // jump when the machine's clock is set.
  virtual absl::Time Now() const = 0;

  // Returns the nanoseconds of a clock that never jumps. Only differences mean anything; use it for
  // durations.
  virtual int64_t MonotonicNanos() const = 0;

  // Blocks until `condition` holds or Now() reaches `deadline`, and returns whether the condition
  // holds. A wall clock that is set meanwhile, forward or back, is noticed within a second. The
  // caller must hold `mutex`; it is released during the wait and held again on return, as with
  // absl::Mutex::AwaitWithDeadline.
  virtual bool AwaitUntil(absl::Mutex& mutex, const absl::Condition& condition,
                          absl::Time deadline) = 0;

  // Returns a clock for durations: its Now() advances evenly, whatever the wall clock is set to.
  // Its times may only be compared with each other. It lives as long as this clock.
  virtual Clock& Steady() = 0;
};

// Returns the clock that reads the machine's time. It lives as long as the process.
Clock& SystemClock();

}  // namespace wan
