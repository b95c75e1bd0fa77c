#include "server/calls/handshake_pace.h"

#include <gtest/gtest.h>

#include <optional>

#include "tests/fakes/fake_clock.h"

namespace wan::server {
namespace {

class HandshakePaceTest : public ::testing::Test {
 protected:
  std::optional<absl::Duration> Last(int count) {
    std::optional<absl::Duration> wait;
    for (int i = 0; i < count; ++i) wait = pace_.Take("a");
    return wait;
  }

  fakes::FakeClock clock_;
  HandshakePace pace_{clock_, {.most = 10, .per_second = 5, .debt = 20}};
};

TEST_F(HandshakePaceTest, WhoMakesFewNeverWaits) {
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(pace_.Take("a"), absl::ZeroDuration());
    clock_.Advance(absl::Milliseconds(200));
  }
}

TEST_F(HandshakePaceTest, WhoMakesManyWaitsInLineAndNobodyElseDoes) {
  EXPECT_EQ(Last(10), absl::ZeroDuration());
  EXPECT_EQ(Last(1), absl::Milliseconds(200));
  EXPECT_EQ(Last(1), absl::Milliseconds(400));
  EXPECT_EQ(pace_.Take("b"), absl::ZeroDuration());
  clock_.Advance(absl::Milliseconds(600));
  EXPECT_EQ(Last(1), absl::ZeroDuration());
}

TEST_F(HandshakePaceTest, WhoeverWouldWaitLongerThanTheLineIsLetGo) {
  EXPECT_EQ(Last(30), absl::Seconds(4));
  EXPECT_EQ(Last(1), std::nullopt);
  EXPECT_EQ(Last(1000), std::nullopt);
  EXPECT_EQ(pace_.Take("b"), absl::ZeroDuration());
  clock_.Advance(absl::Milliseconds(200));
  EXPECT_EQ(Last(1), absl::Seconds(4));
}

}  // namespace
}  // namespace wan::server
