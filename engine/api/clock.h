// Time as an injected interface, so that tests of queues, deadlines and reports never wait.
#pragma once

#include <cstdint>

#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace wan {

// Any thread may call any method at any time.
class Clock {
 public:
  virtual ~Clock() = default;

  // Returns the wall-clock time. Use it for timestamps that people and other machines read; it
  // jumps when the machine's clock is set.
  virtual absl::Time Now() const = 0;

  // Returns the nanoseconds of a clock that never jumps. Use differences of it for durations.
  virtual int64_t MonotonicNanos() const = 0;

  // Blocks until `condition` holds or Now() reaches `deadline`, and returns whether the condition
  // holds. If the wall clock is set meanwhile, that is noticed within a second. `mutex` must be
  // held; it is released during the wait and held again on return, as with
  // absl::Mutex::AwaitWithDeadline.
  virtual bool AwaitUntil(absl::Mutex& mutex, const absl::Condition& condition,
                          absl::Time deadline) = 0;

  // Returns a clock for durations: its Now() advances evenly, even if the wall clock is set. Its
  // times are comparable only with each other.
  virtual Clock& Steady() = 0;
};

// Returns the clock that reads the machine's time. It lives until the process ends.
Clock& SystemClock();

}  // namespace wan
