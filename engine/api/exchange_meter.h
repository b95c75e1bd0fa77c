// Counts the exchanges of one device of a group with the others.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace wan {

// Sums since the meter was made.
struct Exchanged {
  uint64_t sent_bytes = 0;
  // The time in which the device was idle because its inputs had not arrived.
  double waited_seconds = 0;
};

// Thread-safe; never waits for a device.
class ExchangeMeter {
 public:
  // Returns how many seconds the device has waited, or nullopt while the wait is not over. It may
  // throw when the device is lost; the wait does not count then.
  using Wait = std::function<std::optional<double>()>;

  void CountSent(uint64_t bytes);
  // The device's thread calls it when the end of the wait is queued. `wait` is called on any thread
  // until it returns a figure.
  void CountWait(Wait wait);

  // Returns the sums, with those waits that are over.
  Exchanged Read();

 private:
  // Adds the waits that are over, the oldest first, up to one that is not.
  void Settle() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  absl::Mutex mutex_;
  Exchanged sums_ ABSL_GUARDED_BY(mutex_);
  std::deque<Wait> pending_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace wan
