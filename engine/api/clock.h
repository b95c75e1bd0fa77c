// Time as an injected interface, so that tests of queues, deadlines and reports never wait.
#pragma once

#include <cstdint>

#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace wan {

class Clock {
 public:
  virtual ~Clock() = default;

  // Wall-clock time: for what people and other machines read.
  virtual absl::Time Now() const = 0;

  // Nanoseconds of a clock that never jumps: for durations.
  virtual int64_t MonotonicNanos() const = 0;

  // Blocks until `condition` holds or Now() reaches `deadline`; true if the condition holds. The
  // caller holds `mutex`, which is released while waiting, as in absl::Mutex::AwaitWithDeadline.
  virtual bool AwaitUntil(absl::Mutex& mutex, const absl::Condition& condition,
                          absl::Time deadline) = 0;
};

// The machine's clocks. Lives as long as the process.
Clock& SystemClock();

}  // namespace wan
