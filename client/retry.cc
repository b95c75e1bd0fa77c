#include "client/retry.h"

#include <algorithm>
#include <cmath>
#include <condition_variable>
#include <mutex>

#include "client/error.h"

namespace wan::client {
namespace {

class RealBackoffClock final : public BackoffClock {
 public:
  void Wait(absl::Duration delay, const std::stop_token& stop) override {
    std::mutex mutex;
    std::condition_variable_any stopped;
    std::unique_lock lock(mutex);
    stopped.wait_for(lock, stop, absl::ToChronoNanoseconds(delay), [] { return false; });
  }
};

}  // namespace

BackoffClock& SystemBackoffClock() {
  static RealBackoffClock* const clock = new RealBackoffClock;
  return *clock;
}

Backoff::Backoff(const RetryPolicy& policy, BackoffClock& clock, const std::stop_token& stop)
    : policy_(policy), clock_(clock), stop_(stop) {}

bool Backoff::ShouldRetry(const absl::Status& status) {
  if (!absl::IsUnavailable(status) || retries_ >= policy_.max_retries) return false;
  const absl::Duration exponential =
      policy_.initial_delay * std::pow(policy_.multiplier, retries_++);
  const absl::Duration wanted = DetailsOf(status).retry_delay.value_or(absl::ZeroDuration());
  const absl::Duration delay = std::max(std::min(exponential, policy_.max_delay), wanted);
  if (policy_.on_retry) policy_.on_retry(retries_, delay);
  clock_.Wait(delay, stop_);
  return !stop_.stop_requested();
}

}  // namespace wan::client
