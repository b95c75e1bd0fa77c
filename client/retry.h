// Bounded retries with exponential back-off, over an injected clock.
#pragma once

#include <functional>
#include <stop_token>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace wan::client {

// The defaults ride out a restart of the server: the first retries come quickly, then one comes a
// second, so that a client is back within 2 s of the server's return, and after about two minutes
// without an answer the client gives up.
struct RetryPolicy {
  // How many retries in a row may fail without any progress between them; 0: no retries.
  int max_retries = 120;
  absl::Duration initial_delay = absl::Milliseconds(200);
  absl::Duration max_delay = absl::Seconds(1);
  // The factor between a delay and the next one.
  double multiplier = 2;
  // Called before each wait with the number of the retry, which is 1 for the first after progress,
  // in the thread that makes the call. May be null.
  std::function<void(int retry, absl::Duration delay)> on_retry;
};

// Waits between two attempts. Thread-safe.
class BackoffClock {
 public:
  virtual ~BackoffClock() = default;

  // Blocks for `delay`, or until `stop` is requested.
  virtual void Wait(absl::Duration delay, const std::stop_token& stop) = 0;
};

// Returns a clock that really waits; it is never destroyed.
BackoffClock& SystemBackoffClock();

// Decides whether a call is tried again, and waits before that. One object serves one call and all
// its retries, in one thread.
class Backoff {
 public:
  // `clock` must outlive this object.
  Backoff(const RetryPolicy& policy, BackoffClock& clock, const std::stop_token& stop);

  // Tells that the call made progress: the next failure counts as the first one again.
  void Reset() { retries_ = 0; }

  // Call it after a failure. Returns false at once if `status` is not UNAVAILABLE or no retries are
  // left. Otherwise waits, at least for the delay that the server asks for in `status`, and returns
  // true unless `stop` is requested by then.
  bool ShouldRetry(const absl::Status& status);

 private:
  RetryPolicy policy_;
  BackoffClock& clock_;
  std::stop_token stop_;
  int retries_ = 0;
};

}  // namespace wan::client
