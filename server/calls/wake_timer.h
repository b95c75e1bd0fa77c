// Calls functions of streams at given times.
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

  // Returns a key for a stream. `wake` is called on the timer's thread with no lock held, until
  // Remove.
  std::string Add(Wake wake);

  // Sets the time of the next `wake` in place of an earlier one; a time in the past means at once.
  // `time` is of the clock's Steady().
  void WakeAt(const std::string& key, absl::Time time);

  // A running `wake` may end after this returns.
  void Remove(const std::string& key);

 private:
  void Expired(const std::string& key);

  absl::Mutex mutex_;
  int64_t last_key_ ABSL_GUARDED_BY(mutex_) = 0;
  std::unordered_map<std::string, Wake> streams_ ABSL_GUARDED_BY(mutex_);
  DeadlineTimer timer_;  // last: its thread uses the others
};

}  // namespace wan::server
