#include "engine/api/clock.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <list>
#include <mutex>
#include <thread>

#include "absl/time/clock.h"

namespace wan {
namespace {

// The longest time until the clock notices that the wall clock was set.
constexpr absl::Duration kLook = absl::Seconds(1);
// The delay before the next try to wake a waiter whose mutex is locked. A second try is seldom
// needed, because the release of a mutex also wakes its waiters.
constexpr absl::Duration kAgain = absl::Milliseconds(10);
constexpr absl::Duration kLongest = absl::Hours(1);

// absl::Mutex waits until a wall-clock time: if the clock is set back a day, a wait of a second
// lasts a day. So threads here wait only for their condition, without a deadline. One more thread,
// which sleeps on the clock that never jumps, wakes each waiter at its time.
class Waker {
 public:
  // Implements Clock::AwaitUntil. `jumps` tells whether the clock can be set.
  bool Await(const Clock& clock, bool jumps, absl::Mutex& mutex, const absl::Condition& condition,
             absl::Time deadline) ABSL_NO_THREAD_SAFETY_ANALYSIS {
    if (deadline == absl::InfiniteFuture()) {
      mutex.Await(condition);
      return true;
    }
    const auto done = [&] { return condition.Eval() || clock.Now() >= deadline; };
    if (!done()) {
      const auto place = Add({&mutex, &clock, deadline, jumps});
      mutex.Await(absl::Condition(&done));
      Remove(place);
    }
    return condition.Eval();
  }

 private:
  struct Waiter {
    absl::Mutex* mutex;
    const Clock* clock;
    absl::Time deadline;
    bool jumps;

    // Returns the time until this waiter must be checked again; zero if its deadline has come.
    absl::Duration Sleep() const {
      const absl::Duration left = std::max(deadline - clock->Now(), absl::ZeroDuration());
      return std::min(left, jumps ? kLook : kLongest);
    }
  };
  using Waiters = std::list<Waiter>;

  static std::chrono::steady_clock::time_point After(absl::Duration duration) {
    return std::chrono::steady_clock::now() + absl::ToChronoNanoseconds(duration);
  }

  // Callers of Add and Remove already hold the waiter's mutex when these functions take mutex_. So
  // Run, which holds mutex_, must never wait for a waiter's mutex.
  Waiters::iterator Add(const Waiter& waiter) {
    const std::lock_guard lock(mutex_);
    if (!started_) std::thread([this] { Run(); }).detach();  // the clock is never destroyed
    started_ = true;
    if (After(waiter.Sleep()) < next_) changed_.notify_one();
    return waiters_.insert(waiters_.end(), waiter);
  }

  void Remove(Waiters::iterator place) {
    const std::lock_guard lock(mutex_);
    waiters_.erase(place);
  }

  void Run() {
    std::unique_lock lock(mutex_);
    for (;;) {
      absl::Duration sleep = kLongest;
      for (const Waiter& waiter : waiters_) {
        const absl::Duration left = waiter.Sleep();
        if (left > absl::ZeroDuration()) {
          sleep = std::min(sleep, left);
        } else if (waiter.mutex->TryLock()) {
          waiter.mutex->Unlock();  // the release of a mutex checks its waiters' conditions
        } else {
          sleep = std::min(sleep, kAgain);
        }
      }
      next_ = After(sleep);
      changed_.wait_until(lock, next_);
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  Waiters waiters_;  // each listed mutex is alive, because its owner is in Await
  std::chrono::steady_clock::time_point next_;  // when Run checks again unless it is woken
  bool started_ = false;
};

int64_t SteadyNanos() {
  return std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count();
}

class SteadyClock final : public Clock {
 public:
  explicit SteadyClock(Waker& waker)
      : waker_(waker), origin_(absl::Now() - absl::Nanoseconds(SteadyNanos())) {}

  absl::Time Now() const override { return origin_ + absl::Nanoseconds(SteadyNanos()); }
  int64_t MonotonicNanos() const override { return SteadyNanos(); }
  bool AwaitUntil(absl::Mutex& mutex, const absl::Condition& condition,
                  absl::Time deadline) override {
    return waker_.Await(*this, /*jumps=*/false, mutex, condition, deadline);
  }
  Clock& Steady() override { return *this; }

 private:
  Waker& waker_;
  const absl::Time origin_;  // time of construction by the wall clock; an arbitrary origin
};

class RealClock final : public Clock {
 public:
  absl::Time Now() const override { return absl::Now(); }
  int64_t MonotonicNanos() const override { return SteadyNanos(); }
  bool AwaitUntil(absl::Mutex& mutex, const absl::Condition& condition,
                  absl::Time deadline) override {
    return waker_.Await(*this, /*jumps=*/true, mutex, condition, deadline);
  }
  Clock& Steady() override { return steady_; }

 private:
  Waker waker_;
  SteadyClock steady_{waker_};
};

}  // namespace

Clock& SystemClock() {
  static RealClock* const clock = new RealClock;
  return *clock;
}

}  // namespace wan
