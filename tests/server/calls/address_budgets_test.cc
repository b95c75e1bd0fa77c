// What the connections of an address may do together.
#include "server/calls/address_budgets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/fakes/fake_clock.h"

namespace wan::server {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

class AddressBudgetsTest : public ::testing::Test {
 protected:
  fakes::FakeClock clock_;
  AddressBudgets budgets_{{.unanswered = 100, .resets = {.most = 50, .per_second = 10, .debt = 20}},
                          clock_};
};

TEST_F(AddressBudgetsTest, AnAddressHasHalfOfTheCallsAndANewcomerFindsRoom) {
  const auto first = budgets_.Join("a");
  const auto second = budgets_.Join("a");
  EXPECT_THAT(first->Tell(30, 0), IsEmpty());
  EXPECT_THAT(second->Tell(20, 0), IsEmpty());
  EXPECT_THAT(second->Tell(21, 0), HasSubstr("have 51 open calls"));
  EXPECT_THAT(second->Tell(20, 0), IsEmpty()) << "fewer are never refused";
  const auto newcomer = budgets_.Join("b");
  EXPECT_THAT(newcomer->Tell(25, 0), IsEmpty());
  EXPECT_THAT(newcomer->Tell(26, 0), HasSubstr("have 26 open calls"));
}

TEST_F(AddressBudgetsTest, ItsConnectionsShareTheResets) {
  const auto first = budgets_.Join("a");
  const auto second = budgets_.Join("a");
  EXPECT_THAT(first->Tell(0, 25), IsEmpty());
  EXPECT_THAT(second->Tell(0, 25), IsEmpty());
  EXPECT_EQ(budgets_.DebtOf("a"), absl::ZeroDuration());
  EXPECT_THAT(first->Tell(0, 1), HasSubstr("may reset 50 at once and 10 a second"));
  EXPECT_THAT(budgets_.Join("b")->Tell(0, 50), IsEmpty());
  EXPECT_EQ(budgets_.DebtOf("a"), absl::Milliseconds(100));
  clock_.Advance(absl::Seconds(1));
  EXPECT_THAT(second->Tell(0, 9), IsEmpty());
}

TEST_F(AddressBudgetsTest, CallsThatAConnectionLeavesBehindCountAsResetWithinTheLargestDebt) {
  budgets_.Join("a")->Tell(45, 0);
  budgets_.Join("a")->Tell(45, 0);
  EXPECT_EQ(budgets_.DebtOf("a"), absl::Seconds(2));
  EXPECT_THAT(budgets_.Join("a")->Tell(45, 0), IsEmpty()) << "nothing is open any more";
  EXPECT_EQ(budgets_.DebtOf("a"), absl::Seconds(2));
  clock_.Advance(absl::Seconds(2));
  EXPECT_EQ(budgets_.DebtOf("a"), absl::ZeroDuration());
  EXPECT_EQ(budgets_.DebtOf("b"), absl::ZeroDuration());
}

TEST_F(AddressBudgetsTest, TheLogHasALineInAMinute) {
  EXPECT_TRUE(budgets_.Join("a")->MayLog());
  const auto part = budgets_.Join("a");
  EXPECT_FALSE(part->MayLog());
  EXPECT_TRUE(budgets_.Join("b")->MayLog());
  clock_.Advance(absl::Minutes(1));
  EXPECT_TRUE(part->MayLog());
}

TEST_F(AddressBudgetsTest, AddressesThatHaveGoneAreForgotten) {
  const auto stays = budgets_.Join("stays");
  budgets_.Join("owes")->Tell(40, 0);
  clock_.Advance(absl::Seconds(1));
  for (int i = 0; i < 10'000; ++i) budgets_.Join(std::to_string(i));
  EXPECT_LT(budgets_.size(), 2'100u);
  EXPECT_FALSE(stays->Tell(51, 0).empty());
}

}  // namespace
}  // namespace wan::server
