// Limits how many calls each principal makes in a second.
#pragma once

#include <cstddef>
#include <deque>
#include <string>
#include <unordered_map>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "engine/api/clock.h"

namespace wan::server {

// Remembers the times of the latest calls of each principal that has a limit. Thread-safe.
class CallRates {
 public:
  explicit CallRates(Clock& clock) : clock_(clock.Steady()) {}

  struct Decision {
    // OK if the call is allowed; CallRates counts allowed calls. Otherwise RESOURCE_EXHAUSTED
    // (QUOTA_EXCEEDED), with the time until a call is allowed.
    absl::Status status;
    // Whether this is the principal's first refused call within a minute. Log only first refusals,
    // so that no principal can fill the log.
    bool first_refused = false;
  };
  // Allows at most `per_second` calls of the principal in any second; below 1, one call every 1 /
  // `per_second` seconds. `per_second` must be greater than 0.
  Decision Admit(const std::string& principal, double per_second);

  // Number of principals whose calls are remembered.
  size_t size() const;

 private:
  struct Caller {
    std::deque<absl::Time> calls;  // times of the latest allowed calls, oldest first
    absl::Time told = absl::InfinitePast();
  };

  void ForgetIdle(absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Clock& clock_;
  mutable absl::Mutex mutex_;
  std::unordered_map<std::string, Caller> callers_ ABSL_GUARDED_BY(mutex_);
  size_t forget_at_ ABSL_GUARDED_BY(mutex_) = 1024;
};

}  // namespace wan::server
