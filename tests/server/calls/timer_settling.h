// For tests with a WakeTimer and an injected clock.
#pragma once

#include <string>

#include "absl/synchronization/mutex.h"
#include "engine/api/clock.h"
#include "server/calls/wake_timer.h"

namespace wan::server {

// Waits until the timer has done what was due.
inline void Settle(WakeTimer& timer, Clock& clock) {
  absl::Mutex mutex;
  bool called = false;
  const std::string key = timer.Add([&] {
    absl::MutexLock lock(&mutex);
    called = true;
  });
  timer.WakeAt(key, clock.Steady().Now());
  absl::MutexLock lock(&mutex);
  mutex.Await(absl::Condition(&called));
  timer.Remove(key);
}

}  // namespace wan::server
