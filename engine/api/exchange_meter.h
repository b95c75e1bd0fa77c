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
  // Seconds in which the device was idle because the tensors that it needed had not arrived.
  double waited_seconds = 0;
};

// Thread-safe; no call waits for a device.
class ExchangeMeter {
 public:
  // A function that returns how many seconds the device has waited, or nullopt while it is still
  // waiting. The function may throw if the device is lost; then the wait is not counted.
  using Wait = std::function<std::optional<double>()>;

  void CountSent(uint64_t bytes);
  // Counts a wait. The device's thread calls CountWait when it has queued the end of the wait. The
  // meter calls `wait` on any thread until it returns a number.
  void CountWait(Wait wait);

  // Returns the sums. The sums include all waits that have finished.
  Exchanged Read();

 private:
  // Adds up finished waits, oldest first, up to the first wait that has not finished.
  void Settle() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  absl::Mutex mutex_;
  Exchanged sums_ ABSL_GUARDED_BY(mutex_);
  std::deque<Wait> pending_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace wan
