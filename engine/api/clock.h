// Time behind an interface, so that tests of queues, deadlines and reports can inject a clock and
// never wait.
#pragma once

#include <cstdint>

#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace wan {

// Any thread may call any method at any time.
class Clock {
 public:
  virtual ~Clock() = default;

  // Returns the wall-clock time. Use it for timestamps that people and other machines read. This
  // time jumps when somebody sets the machine's clock.
  virtual absl::Time Now() const = 0;

  // Returns the nanoseconds of a clock that never jumps, counted from an arbitrary moment. Use
  // differences of two results for durations.
  virtual int64_t MonotonicNanos() const = 0;

  // Blocks until `condition` holds or Now() reaches `deadline`, and returns whether the condition
  // holds. If somebody sets the wall clock meanwhile, the wait takes that into account within a
  // second. The caller must hold `mutex`. The mutex is released during the wait and held again on
  // return, as with absl::Mutex::AwaitWithDeadline.
  virtual bool AwaitUntil(absl::Mutex& mutex, const absl::Condition& condition,
                          absl::Time deadline) = 0;

  // Returns a clock for durations: its Now() advances evenly even if somebody sets the wall clock.
  // Compare its times only with each other.
  virtual Clock& Steady() = 0;
};

// Returns the clock that reads the machine's time. The clock lives until the process ends.
Clock& SystemClock();

}  // namespace wan
