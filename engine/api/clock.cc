#include "engine/api/clock.h"

#include <chrono>

#include "absl/time/clock.h"

namespace wan {
namespace {

class RealClock final : public Clock {
 public:
  absl::Time Now() const override { return absl::Now(); }

  int64_t MonotonicNanos() const override {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(
               std::chrono::steady_clock::now().time_since_epoch())
        .count();
  }

  bool AwaitUntil(absl::Mutex& mutex, const absl::Condition& condition,
                  absl::Time deadline) override ABSL_NO_THREAD_SAFETY_ANALYSIS {
    return mutex.AwaitWithDeadline(condition, deadline);
  }
};

}  // namespace

Clock& SystemClock() {
  static RealClock* const clock = new RealClock;
  return *clock;
}

}  // namespace wan
