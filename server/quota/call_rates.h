// How often each principal calls.
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

// Remembers the times of the latest calls of principals that have a limit, and nothing of others.
// Thread-safe.
class CallRates {
 public:
  explicit CallRates(Clock& clock) : clock_(clock.Steady()) {}

  struct Decision {
    // OK, and the call counts; or RESOURCE_EXHAUSTED (QUOTA_EXCEEDED) with the time until it would
    // be let in, and it does not count.
    absl::Status status;
    // Whether it is the first call for a minute that is refused to this principal: what is worth a
    // line of a log, which a caller must not be able to fill.
    bool first_refused = false;
  };
  // Lets in at most `per_second` calls of the principal in any second; with a limit below 1, one
  // call in the time that one call may take. `per_second` is greater than 0.
  Decision Admit(const std::string& principal, double per_second);

  // The number of principals that are remembered.
  size_t size() const;

 private:
  struct Caller {
    std::deque<absl::Time> calls;  // the latest ones that were let in, the oldest first
    absl::Time told = absl::InfinitePast();
  };

  void ForgetIdle(absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Clock& clock_;
  mutable absl::Mutex mutex_;
  std::unordered_map<std::string, Caller> callers_ ABSL_GUARDED_BY(mutex_);
  size_t forget_at_ ABSL_GUARDED_BY(mutex_) = 1024;
};

}  // namespace wan::server
