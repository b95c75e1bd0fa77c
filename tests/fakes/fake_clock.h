// A clock that moves only when a test moves it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <list>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "engine/api/clock.h"

namespace wan::fakes {

// Thread-safe. Both the clock and Steady() start at 2026-01-01 00:00:00 UTC; MonotonicNanos starts
// at 0 and moves with Steady().
class FakeClock final : public Clock {
 public:
  FakeClock();

  // Moves the time forward and wakes everybody who waits for it. When it is called, no mutex may be
  // held on which somebody waits.
  void Advance(absl::Duration duration);

  // Sets the wall clock forward or, if `duration` is negative, back; MonotonicNanos goes on as
  // before. Wakes everybody who waits.
  void Jump(absl::Duration duration);

  // Waits until at least `count` threads are in AwaitUntil.
  void AwaitWaiters(size_t count);

  absl::Time Now() const override;
  int64_t MonotonicNanos() const override;
  bool AwaitUntil(absl::Mutex& mutex, const absl::Condition& condition,
                  absl::Time deadline) override;
  Clock& Steady() override { return steady_; }

 private:
  class SteadyView final : public Clock {
   public:
    explicit SteadyView(FakeClock& clock) : clock_(clock) {}
    absl::Time Now() const override;
    int64_t MonotonicNanos() const override { return clock_.MonotonicNanos(); }
    bool AwaitUntil(absl::Mutex& mutex, const absl::Condition& condition,
                    absl::Time deadline) override {
      return clock_.Await(*this, mutex, condition, deadline);
    }
    Clock& Steady() override { return *this; }

   private:
    FakeClock& clock_;
  };

  bool Await(const Clock& clock, absl::Mutex& mutex, const absl::Condition& condition,
             absl::Time deadline);
  void WakeWaiters();

  SteadyView steady_{*this};
  std::atomic<int64_t> nanos_{0};
  std::atomic<int64_t> jumped_{0};  // sum of all jumps, in nanoseconds
  absl::Mutex waiters_mutex_;
  std::list<absl::Mutex*> waiters_ ABSL_GUARDED_BY(waiters_mutex_);
};

}  // namespace wan::fakes
