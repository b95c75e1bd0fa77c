#include "server/calls/stall_watch.h"

#include <gtest/gtest.h>

#include <optional>

#include "absl/synchronization/mutex.h"
#include "tests/fakes/fake_clock.h"
#include "tests/server/calls/timer_settling.h"

namespace wan::server {
namespace {

class StallWatchTest : public ::testing::Test {
 protected:
  StallWatchTest() {
    watch_.emplace(StallWatch::Options{clock_, timer_, absl::Seconds(60)}, [this] {
      absl::MutexLock lock(&mutex_);
      ++stalls_;
    });
  }

  void AwaitStalls(int count) {
    absl::MutexLock lock(&mutex_);
    const auto enough = [&] { return stalls_ >= count; };
    mutex_.Await(absl::Condition(&enough));
  }
  int Stalls() {
    absl::MutexLock lock(&mutex_);
    return stalls_;
  }
  fakes::FakeClock clock_;
  WakeTimer timer_{clock_};
  absl::Mutex mutex_;
  int stalls_ = 0;
  std::optional<StallWatch> watch_;
};

TEST_F(StallWatchTest, AWriteMayTakeItsTimeAndNoLonger) {
  watch_->Begin();
  clock_.Advance(absl::Seconds(60) - absl::Nanoseconds(1));
  Settle(timer_, clock_);
  EXPECT_EQ(Stalls(), 0);
  clock_.Advance(absl::Nanoseconds(1));
  AwaitStalls(1);
}

TEST_F(StallWatchTest, AWallClockThatIsSetChangesNothing) {
  watch_->Begin();
  clock_.Jump(absl::Hours(24));
  Settle(timer_, clock_);
  EXPECT_EQ(Stalls(), 0);
  clock_.Jump(-absl::Hours(48));
  clock_.Advance(absl::Seconds(60));
  AwaitStalls(1);
}

TEST_F(StallWatchTest, EveryWriteHasItsOwnTime) {
  for (int i = 0; i < 5; ++i) {
    watch_->Begin();
    clock_.Advance(absl::Seconds(50));
    Settle(timer_, clock_);
    watch_->End();
  }
  EXPECT_EQ(Stalls(), 0);
  watch_->Begin();
  clock_.Advance(absl::Seconds(60));
  AwaitStalls(1);
}

TEST_F(StallWatchTest, AStreamThatSendsNothingIsNotStalled) {
  watch_->Begin();
  watch_->End();
  clock_.Advance(absl::Hours(1));
  Settle(timer_, clock_);
  clock_.Advance(absl::Hours(1));
  Settle(timer_, clock_);
  EXPECT_EQ(Stalls(), 0);
}

TEST_F(StallWatchTest, NothingIsCalledAfterTheStop) {
  watch_->Begin();
  watch_->Stop();
  clock_.Advance(absl::Seconds(61));
  Settle(timer_, clock_);
  EXPECT_EQ(Stalls(), 0);
  watch_.reset();
}

}  // namespace
}  // namespace wan::server
