// Bounded retries with exponential back-off, over an injected clock.
#pragma once

#include <stop_token>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace wan::client {

struct RetryPolicy {
  // Retries in a row without any progress between them; 0: none.
  int max_retries = 10;
  absl::Duration initial_delay = absl::Milliseconds(200);
  absl::Duration max_delay = absl::Seconds(5);
  // Each delay is this many times the one before.
  double multiplier = 2;
};

// How time passes between two attempts.
class BackoffClock {
 public:
  virtual ~BackoffClock() = default;

  // Blocks for `delay`, or until `stop` is requested.
  virtual void Wait(absl::Duration delay, const std::stop_token& stop) = 0;
};

// The machine's. Lives as long as the process.
BackoffClock& SystemBackoffClock();

// The state of one call that is tried again. One thread.
class Backoff {
 public:
  // `clock` must outlive it.
  Backoff(const RetryPolicy& policy, BackoffClock& clock, const std::stop_token& stop);

  // The call got further: the next failure begins with the first delay again.
  void Reset() { retries_ = 0; }

  // After a failure: waits and returns true if the call should be tried again. That is so for
  // UNAVAILABLE while retries are left and `stop` is not requested. Where the server says when to
  // come back, the wait is not shorter than that.
  bool ShouldRetry(const absl::Status& status);

 private:
  RetryPolicy policy_;
  BackoffClock& clock_;
  std::stop_token stop_;
  int retries_ = 0;
};

}  // namespace wan::client
