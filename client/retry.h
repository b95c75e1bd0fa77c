// Repeats calls a limited number of times with exponential back-off, over an injected clock.
#pragma once

#include <functional>
#include <stop_token>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace wan::client {

// With the defaults a client survives a restart of the server: after a few quick retries it makes
// one per second, so it reconnects within 2 s of the server's return, and gives up after about two
// minutes.
struct RetryPolicy {
  // Maximum number of retries in a row without progress; 0: the call is never retried.
  int max_retries = 120;
  absl::Duration initial_delay = absl::Milliseconds(200);
  absl::Duration max_delay = absl::Seconds(1);
  // The factor by which each delay is longer than the one before.
  double multiplier = 2;
  // Called on the calling thread before each wait, with the number of the retry since the last
  // progress, counted from 1. The function may be null.
  std::function<void(int retry, absl::Duration delay)> on_retry;
};

// Waits between two attempts of a call. Thread-safe.
class BackoffClock {
 public:
  virtual ~BackoffClock() = default;

  // Blocks for `delay`, or until `stop` is requested.
  virtual void Wait(absl::Duration delay, const std::stop_token& stop) = 0;
};

// Returns the clock that waits in real time; it is never destroyed.
BackoffClock& SystemBackoffClock();

// Decides whether to retry a call, and waits before the retry. Use one object for a call and its
// retries, on one thread.
class Backoff {
 public:
  // `clock` must outlive this object.
  Backoff(const RetryPolicy& policy, BackoffClock& clock, const std::stop_token& stop);

  // Call Reset when the call has made progress; the count of retries starts again.
  void Reset() { retries_ = 0; }

  // Call ShouldRetry after a failure. Returns false at once if `status` is not UNAVAILABLE or no
  // retries are left. Otherwise waits, at least for the retry delay in `status`, and returns true
  // unless `stop` was requested.
  bool ShouldRetry(const absl::Status& status);

 private:
  RetryPolicy policy_;
  BackoffClock& clock_;
  std::stop_token stop_;
  int retries_ = 0;
};

}  // namespace wan::client
