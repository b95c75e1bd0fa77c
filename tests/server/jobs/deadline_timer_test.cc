#include "server/jobs/deadline_timer.h"

#include <string>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/fakes/fake_clock.h"

namespace wan::server {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class DeadlineTimerTest : public testing::Test {
 protected:
  DeadlineTimerTest() : timer_(clock_) {
    timer_.Start([this](const std::string& job) {
      absl::MutexLock lock(&mutex_);
      expired_.push_back(job);
    });
    clock_.AwaitWaiters(1);  // it sleeps, and has to be woken by what the tests do
  }

  // Waits until so many have expired.
  std::vector<std::string> Expired(size_t count) {
    absl::MutexLock lock(&mutex_);
    const auto there = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return expired_.size() >= count;
    };
    mutex_.Await(absl::Condition(&there));
    return expired_;
  }

  absl::Time In(int seconds) { return clock_.Now() + absl::Seconds(seconds); }

  fakes::FakeClock clock_;
  absl::Mutex mutex_;
  std::vector<std::string> expired_ ABSL_GUARDED_BY(mutex_);
  DeadlineTimer timer_;
};

TEST_F(DeadlineTimerTest, ExpiresInOrderOfTime) {
  timer_.Add("late", In(20));
  timer_.Add("soon", In(10));
  timer_.Add("never", In(1000));
  clock_.Advance(absl::Seconds(10));
  EXPECT_THAT(Expired(1), ElementsAre("soon"));
  clock_.Advance(absl::Seconds(10));
  EXPECT_THAT(Expired(2), ElementsAre("soon", "late"));
}

TEST_F(DeadlineTimerTest, AnEarlierOneThatComesLaterIsSeen) {
  timer_.Add("late", In(20));
  timer_.Add("soon", In(5));
  clock_.Advance(absl::Seconds(5));
  EXPECT_THAT(Expired(1), ElementsAre("soon"));
}

TEST_F(DeadlineTimerTest, ThePastExpiresAtOnce) {
  timer_.Add("past", In(-1));
  EXPECT_THAT(Expired(1), ElementsAre("past"));
}

TEST_F(DeadlineTimerTest, RemovedOnesDoNotExpire) {
  timer_.Add("a", In(10));
  timer_.Add("b", In(10));
  timer_.Remove("a");
  timer_.Remove("none");
  clock_.Advance(absl::Seconds(10));
  EXPECT_THAT(Expired(1), ElementsAre("b"));
}

TEST_F(DeadlineTimerTest, NothingExpiresAfterStop) {
  timer_.Add("a", In(10));
  timer_.Stop();
  timer_.Stop();
  clock_.Advance(absl::Seconds(10));
  EXPECT_THAT(Expired(0), IsEmpty());
}

}  // namespace
}  // namespace wan::server
