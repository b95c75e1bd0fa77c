#include "server/quota/call_rates.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "engine/api/errors.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/conversion/errors.h"
#include "tests/fakes/fake_clock.h"

namespace wan::server {
namespace {

using testing::HasSubstr;

class CallRatesTest : public testing::Test {
 protected:
  bool Admits(const std::string& principal, double per_second) {
    return rates_.Admit(principal, per_second).status.ok();
  }

  fakes::FakeClock clock_;
  CallRates rates_{clock_};
};

TEST_F(CallRatesTest, LetsInSoManyInAnySecond) {
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(Admits("alice", 3)) << i;
    clock_.Advance(absl::Milliseconds(100));
  }
  EXPECT_FALSE(Admits("alice", 3));
  EXPECT_TRUE(Admits("bob", 3));
  // The first call was 300 ms ago.
  clock_.Advance(absl::Milliseconds(699));
  EXPECT_FALSE(Admits("alice", 3));
  clock_.Advance(absl::Milliseconds(1));
  EXPECT_TRUE(Admits("alice", 3));
  EXPECT_FALSE(Admits("alice", 3));
}

TEST_F(CallRatesTest, AWallClockThatIsSetChangesNothing) {
  for (const absl::Duration jump : {absl::Hours(24), -absl::Hours(48)}) {
    EXPECT_TRUE(Admits("alice", 1));
    clock_.Jump(jump);
    EXPECT_FALSE(Admits("alice", 1));
    clock_.Advance(absl::Seconds(1));
  }
}

TEST_F(CallRatesTest, ALimitBelowOneIsOneCallInAWhile) {
  EXPECT_TRUE(Admits("alice", 0.25));
  clock_.Advance(absl::Milliseconds(3'999));
  EXPECT_FALSE(Admits("alice", 0.25));
  clock_.Advance(absl::Milliseconds(1));
  EXPECT_TRUE(Admits("alice", 0.25));
}

TEST_F(CallRatesTest, SaysWhenTheCallWouldBeLetIn) {
  EXPECT_TRUE(Admits("alice", 1));
  clock_.Advance(absl::Milliseconds(400));
  const absl::Status refused = rates_.Admit("alice", 1).status;
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(ReasonOf(refused), kReasonQuotaExceeded);
  EXPECT_EQ(RetryDelayOf(refused), absl::Milliseconds(600));
  EXPECT_THAT(std::string(refused.message()),
              HasSubstr("the principal 'alice' has made 1 call within 400ms; the quota "
                        "calls_per_second is 1; try again in 600ms"));
  clock_.Advance(absl::Milliseconds(600));
  EXPECT_TRUE(Admits("alice", 1));
}

TEST_F(CallRatesTest, TellsOfOneRefusalInAMinute) {
  EXPECT_TRUE(Admits("alice", 1));
  EXPECT_TRUE(rates_.Admit("alice", 1).first_refused);
  EXPECT_FALSE(rates_.Admit("alice", 1).first_refused);
  clock_.Advance(absl::Seconds(60));
  EXPECT_TRUE(Admits("alice", 1));
  EXPECT_TRUE(rates_.Admit("alice", 1).first_refused);
}

TEST_F(CallRatesTest, ALowerLimitHoldsAtOnceAndAClockThatIsSetBackBlocksNobody) {
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(Admits("alice", 10));
  EXPECT_FALSE(Admits("alice", 2));
  clock_.Jump(-absl::Hours(1));
  clock_.Advance(absl::Seconds(1));
  EXPECT_TRUE(Admits("alice", 2));
}

TEST_F(CallRatesTest, ForgetsWhoDoesNotCall) {
  for (int i = 0; i < 1024; ++i) EXPECT_TRUE(Admits(absl::StrCat("p", i), 1));
  clock_.Advance(absl::Hours(1));
  EXPECT_TRUE(Admits("alice", 1));
  EXPECT_EQ(rates_.size(), 1);
}

}  // namespace
}  // namespace wan::server
