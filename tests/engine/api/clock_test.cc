// The machine's clock. That waits outlive a wall clock which is set is proved by scripts/prove,
// which can set one.
#include "engine/api/clock.h"

#include <gtest/gtest.h>

#include <memory>
#include <thread>
#include <vector>

#include "absl/time/clock.h"

namespace wan {
namespace {

constexpr absl::Duration kSoon = absl::Milliseconds(20);

class SystemClockTest : public testing::TestWithParam<bool> {
 protected:
  // The wall clock, or the steady one.
  Clock& clock_ = GetParam() ? SystemClock().Steady() : SystemClock();
};

TEST_P(SystemClockTest, ADeadlineEndsTheWaitAndNotBefore) {
  absl::Mutex mutex;
  const bool never = false;
  absl::MutexLock lock(&mutex);
  const absl::Time deadline = clock_.Now() + kSoon;
  EXPECT_FALSE(clock_.AwaitUntil(mutex, absl::Condition(&never), deadline));
  EXPECT_GE(clock_.Now(), deadline);
  EXPECT_FALSE(clock_.AwaitUntil(mutex, absl::Condition(&never), absl::InfinitePast()));
}

TEST_P(SystemClockTest, AConditionEndsTheWait) {
  for (const absl::Duration time : {absl::InfiniteDuration(), absl::Hours(24)}) {
    absl::Mutex mutex;
    bool ready = false;
    std::thread waiter([&] {
      absl::MutexLock lock(&mutex);
      EXPECT_TRUE(clock_.AwaitUntil(mutex, absl::Condition(&ready), clock_.Now() + time));
    });
    {
      absl::MutexLock lock(&mutex);
      ready = true;
    }
    waiter.join();
  }
}

// Also one that comes before all that were waited for so far.
TEST_P(SystemClockTest, EachWaiterHasADeadlineOfItsOwn) {
  absl::Mutex mutex;
  bool end = false;
  std::thread patient([&] {
    absl::MutexLock lock(&mutex);
    EXPECT_TRUE(clock_.AwaitUntil(mutex, absl::Condition(&end), clock_.Now() + absl::Hours(1)));
  });
  std::vector<std::thread> waiters;
  for (int i = 1; i <= 8; ++i) {
    waiters.emplace_back([&, i] {
      // Mutexes that die as soon as the wait is over.
      const auto own = std::make_unique<absl::Mutex>();
      const bool never = false;
      absl::MutexLock lock(own.get());
      EXPECT_FALSE(clock_.AwaitUntil(*own, absl::Condition(&never), clock_.Now() + kSoon / i));
    });
  }
  for (std::thread& waiter : waiters) waiter.join();
  {
    absl::MutexLock lock(&mutex);
    end = true;
  }
  patient.join();
}

// Whoever wakes a waiter must not wait for a mutex that is held for long.
TEST_P(SystemClockTest, AMutexThatIsHeldKeepsNobodyElseWaiting) {
  absl::Mutex held;
  bool waits = false;
  std::thread late([&] {
    const bool never = false;
    absl::MutexLock lock(&held);
    waits = true;
    EXPECT_FALSE(clock_.AwaitUntil(held, absl::Condition(&never), clock_.Now() + kSoon / 4));
  });
  absl::Mutex mutex;
  const bool never = false;
  {
    const absl::MutexLock keep(&held, absl::Condition(&waits));
    absl::MutexLock lock(&mutex);
    EXPECT_FALSE(clock_.AwaitUntil(mutex, absl::Condition(&never), clock_.Now() + kSoon));
  }
  late.join();
}

INSTANTIATE_TEST_SUITE_P(Clocks, SystemClockTest, testing::Bool(), [](const auto& steady) {
  return steady.param ? std::string("Steady") : std::string("Wall");
});

}  // namespace
}  // namespace wan
