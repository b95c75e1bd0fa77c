#include "tests/fakes/fake_clock.h"

namespace wan::fakes {
namespace {

// The time 2026-01-01 00:00:00 UTC.
const absl::Time kStart = absl::FromUnixSeconds(1'767'225'600);

}  // namespace

FakeClock::FakeClock() = default;

absl::Time FakeClock::Now() const {
  return kStart + absl::Nanoseconds(nanos_.load() + jumped_.load());
}

absl::Time FakeClock::SteadyView::Now() const {
  return kStart + absl::Nanoseconds(clock_.nanos_.load());
}

int64_t FakeClock::MonotonicNanos() const { return nanos_.load(); }

void FakeClock::Advance(absl::Duration duration) {
  nanos_ += absl::ToInt64Nanoseconds(duration);
  WakeWaiters();
}

void FakeClock::Jump(absl::Duration duration) {
  jumped_ += absl::ToInt64Nanoseconds(duration);
  WakeWaiters();
}

void FakeClock::WakeWaiters() {
  absl::MutexLock lock(&waiters_mutex_);
  // Lock and unlock each mutex, because a mutex looks at the conditions of its waiters only when it
  // is released.
  for (absl::Mutex* waiter : waiters_) {
    waiter->Lock();
    waiter->Unlock();
  }
}

void FakeClock::AwaitWaiters(size_t count) {
  absl::MutexLock lock(&waiters_mutex_);
  const auto there = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(waiters_mutex_) {
    return waiters_.size() >= count;
  };
  waiters_mutex_.Await(absl::Condition(&there));
}

// Change the list only while the waiter's mutex is not held, because Advance takes the two locks in
// the other order. While a mutex is in the list, its owner is in AwaitUntil, so the mutex cannot be
// destroyed.
bool FakeClock::Await(const Clock& clock, absl::Mutex& mutex, const absl::Condition& condition,
                      absl::Time deadline) ABSL_NO_THREAD_SAFETY_ANALYSIS {
  const auto done = [&] { return condition.Eval() || clock.Now() >= deadline; };
  while (!done()) {
    mutex.Unlock();
    std::list<absl::Mutex*>::iterator place;
    {
      absl::MutexLock lock(&waiters_mutex_);
      place = waiters_.insert(waiters_.end(), &mutex);
    }
    mutex.Lock();
    mutex.Await(absl::Condition(&done));
    mutex.Unlock();
    {
      absl::MutexLock lock(&waiters_mutex_);
      waiters_.erase(place);
    }
    mutex.Lock();
  }
  return condition.Eval();
}

bool FakeClock::AwaitUntil(absl::Mutex& mutex, const absl::Condition& condition,
                           absl::Time deadline) {
  return Await(*this, mutex, condition, deadline);
}

}  // namespace wan::fakes
