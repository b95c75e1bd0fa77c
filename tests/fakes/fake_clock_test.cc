#include "tests/fakes/fake_clock.h"

#include <memory>
#include <thread>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "gtest/gtest.h"

namespace wan::fakes {
namespace {

TEST(FakeClockTest, MovesOnlyWhenTold) {
  FakeClock clock;
  EXPECT_EQ(absl::FormatTime(clock.Now(), absl::UTCTimeZone()), "2026-01-01T00:00:00+00:00");
  EXPECT_EQ(clock.MonotonicNanos(), 0);
  clock.Advance(absl::Milliseconds(1500));
  EXPECT_EQ(absl::FormatTime(clock.Now(), absl::UTCTimeZone()), "2026-01-01T00:00:01.5+00:00");
  EXPECT_EQ(clock.MonotonicNanos(), 1'500'000'000);
}

TEST(FakeClockTest, AJumpMovesTheWallClockAlone) {
  FakeClock clock;
  const absl::Time start = clock.Now();
  EXPECT_EQ(clock.Steady().Now(), start);
  clock.Jump(-absl::Hours(24));
  clock.Advance(absl::Seconds(1));
  EXPECT_EQ(clock.Now(), start - absl::Hours(24) + absl::Seconds(1));
  EXPECT_EQ(clock.Steady().Now(), start + absl::Seconds(1));
  EXPECT_EQ(&clock.Steady().Steady(), &clock.Steady());
}

TEST(FakeClockTest, ATimeOfTheSteadyClockEndsTheWait) {
  FakeClock clock;
  Clock& steady = clock.Steady();
  const absl::Time deadline = steady.Now() + absl::Seconds(10);
  std::thread waiter([&] {
    absl::Mutex mutex;
    bool never = false;
    absl::MutexLock lock(&mutex);
    EXPECT_FALSE(steady.AwaitUntil(mutex, absl::Condition(&never), deadline));
    EXPECT_EQ(steady.Now(), deadline) << "a jump forward has not ended it";
  });
  clock.AwaitWaiters(1);
  clock.Jump(absl::Hours(24));
  clock.Jump(-absl::Hours(48));
  clock.Advance(absl::Seconds(10));
  waiter.join();
}

TEST(FakeClockTest, AConditionEndsTheWait) {
  FakeClock clock;
  absl::Mutex mutex;
  bool ready = false;
  std::thread waiter([&] {
    absl::MutexLock lock(&mutex);
    EXPECT_TRUE(clock.AwaitUntil(mutex, absl::Condition(&ready), absl::InfiniteFuture()));
  });
  {
    absl::MutexLock lock(&mutex);
    ready = true;
  }
  waiter.join();
}

TEST(FakeClockTest, TheDeadlineEndsTheWait) {
  FakeClock clock;
  absl::Mutex mutex;
  bool never = false;
  const absl::Time deadline = clock.Now() + absl::Seconds(10);
  std::thread waiter([&] {
    absl::MutexLock lock(&mutex);
    EXPECT_FALSE(clock.AwaitUntil(mutex, absl::Condition(&never), deadline));
    EXPECT_EQ(clock.Now(), deadline);
  });
  clock.Advance(absl::Seconds(10));
  waiter.join();
  absl::MutexLock lock(&mutex);
  // The time has already passed.
  EXPECT_FALSE(clock.AwaitUntil(mutex, absl::Condition(&never), deadline));
}

TEST(FakeClockTest, MutexesOfEndedWaitsMayDie) {
  FakeClock clock;
  const absl::Time start = clock.Now();
  std::vector<std::thread> waiters;
  for (int i = 0; i < 8; ++i) {
    waiters.emplace_back([&, i] {
      for (int round = 0; round < 50; ++round) {
        const auto mutex = std::make_unique<absl::Mutex>();
        const bool never = false;
        absl::MutexLock lock(mutex.get());
        clock.AwaitUntil(*mutex, absl::Condition(&never), start + absl::Seconds(i + round));
      }
    });
  }
  for (int second = 0; second < 60; ++second) clock.Advance(absl::Seconds(1));
  for (std::thread& waiter : waiters) waiter.join();
}

}  // namespace
}  // namespace wan::fakes
