#include "engine/monitor/ticker.h"

#include <gtest/gtest.h>

#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "tests/fakes/fake_clock.h"

namespace wan {
namespace {

struct Count {
  absl::Mutex mutex;
  int value ABSL_GUARDED_BY(mutex) = 0;

  void Add() {
    absl::MutexLock lock(&mutex);
    ++value;
  }
  void AwaitAtLeast(int least) {
    const auto reached = [this, least] { return value >= least; };
    absl::MutexLock lock(&mutex, absl::Condition(&reached));
  }
};

TEST(TickerTest, ItWorksAtEveryInterval) {
  fakes::FakeClock clock;
  Count count;
  Ticker ticker(clock, absl::Milliseconds(50), [&] { count.Add(); });
  for (int i = 1; i <= 5; ++i) {
    clock.AwaitWaiters(1);
    clock.Advance(absl::Milliseconds(50));
    count.AwaitAtLeast(i);
  }
}

TEST(TickerTest, ItEndsWithoutWaitingForTheNextInterval) {
  fakes::FakeClock clock;
  Ticker ticker(clock, absl::Hours(1), [] {});
  clock.AwaitWaiters(1);
}

TEST(TickerTest, WorkThatNeverReturnsIsLeftBehind) {
  // All outlive the test: the thread does, too.
  static auto& clock = *new fakes::FakeClock;
  const auto entered = std::make_shared<absl::Notification>();
  const auto never = std::make_shared<absl::Notification>();
  const auto left = std::make_shared<absl::Notification>();
  {
    Ticker ticker(
        clock, absl::Milliseconds(50),
        [=] {
          entered->Notify();
          never->WaitForNotification();
          left->Notify();
        },
        absl::Milliseconds(1));
    clock.AwaitWaiters(1);
    clock.Advance(absl::Milliseconds(50));
    entered->WaitForNotification();
  }
  EXPECT_FALSE(left->HasBeenNotified());
  never->Notify();
  left->WaitForNotification();
}

}  // namespace
}  // namespace wan
