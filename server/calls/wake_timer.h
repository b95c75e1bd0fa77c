// Wakes streams at given times.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <unordered_map>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "engine/api/clock.h"
#include "server/jobs/deadline_timer.h"

namespace wan::server {

// Thread-safe. The clock must outlive the timer.
class WakeTimer {
 public:
  using Wake = std::function<void()>;

  explicit WakeTimer(Clock& clock);

  // Registers a stream and returns its key. From then until Remove, the timer calls `wake` on its
  // thread with no lock held.
  std::string Add(Wake wake);

  // Sets the time of the stream's next `wake` and forgets the time set before; a time in the past
  // means at once. `time` is a time of the clock's Steady().
  void WakeAt(const std::string& key, absl::Time time);

  // A call of `wake` that is already running may end after Remove has returned.
  void Remove(const std::string& key);

 private:
  void Expired(const std::string& key);

  absl::Mutex mutex_;
  int64_t last_key_ ABSL_GUARDED_BY(mutex_) = 0;
  std::unordered_map<std::string, Wake> streams_ ABSL_GUARDED_BY(mutex_);
  DeadlineTimer timer_;  // declared last: its thread uses the members above
};

}  // namespace wan::server
