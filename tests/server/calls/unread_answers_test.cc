#include "server/calls/unread_answers.h"

#include <gtest/gtest.h>

#include <vector>

#include "absl/synchronization/mutex.h"
#include "tests/fakes/fake_clock.h"
#include "tests/server/calls/timer_settling.h"

namespace wan::server {
namespace {

class CallsUnreadAnswersTest : public ::testing::Test {
 protected:
  UnreadAnswers::Entry Begin(int name) {
    return unread_.Begin([this, name] {
      absl::MutexLock lock(&mutex_);
      told_.push_back(name);
    });
  }
  std::vector<int> Told() {
    Settle(timer_, clock_);
    absl::MutexLock lock(&mutex_);
    return told_;
  }

  fakes::FakeClock clock_;
  absl::Mutex mutex_;
  std::vector<int> told_;
  WakeTimer timer_{clock_};
  UnreadAnswers unread_{StallWatch::Options{clock_, timer_, absl::Seconds(60)}};
};

using Names = std::vector<int>;

TEST_F(CallsUnreadAnswersTest, EachAnswerHasItsOwnTime) {
  const auto first = Begin(1);
  clock_.Advance(absl::Seconds(20));
  const auto second = Begin(2);
  const auto third = Begin(3);
  clock_.Advance(absl::Seconds(40) - absl::Nanoseconds(1));
  EXPECT_EQ(Told(), Names{});
  clock_.Advance(absl::Nanoseconds(1));
  EXPECT_EQ(Told(), Names{1});
  unread_.End(second);
  clock_.Advance(absl::Seconds(20));
  EXPECT_EQ(Told(), (Names{1, 3})) << "the second was taken";
  unread_.End(first);
  unread_.End(third);
  clock_.Advance(absl::Hours(1));
  EXPECT_EQ(Told(), (Names{1, 3})) << "once each";
}

TEST_F(CallsUnreadAnswersTest, AnswersThatAreTakenAtOnceAreNotTold) {
  for (int i = 0; i < 100; ++i) {
    unread_.End(Begin(i));
    clock_.Advance(absl::Seconds(7));
  }
  EXPECT_EQ(Told(), Names{});
  Begin(100);
  clock_.Advance(absl::Seconds(60));
  EXPECT_EQ(Told(), Names{100});
}

}  // namespace
}  // namespace wan::server
