// Counts the exchanges of one device of a group with the other devices.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace wan {

// Sums since the meter's construction.
struct Exchanged {
  uint64_t sent_bytes = 0;
  // Seconds in which the device was idle because its inputs had not arrived.
  double waited_seconds = 0;
};

// Thread-safe; never waits for a device.
class ExchangeMeter {
 public:
  // Returns how many seconds the device waited, or nullopt while it is still waiting. It may throw
  // if the device is lost; the wait is not counted then.
  using Wait = std::function<std::optional<double>()>;

  void CountSent(uint64_t bytes);
  // Called by the device's thread when the end of the wait is queued. `wait` is called on any
  // thread, until it returns a number.
  void CountWait(Wait wait);

  // Returns the sums, including all finished waits.
  Exchanged Read();

 private:
  // Adds finished waits, oldest first, up to the first unfinished one.
  void Settle() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  absl::Mutex mutex_;
  Exchanged sums_ ABSL_GUARDED_BY(mutex_);
  std::deque<Wait> pending_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace wan
