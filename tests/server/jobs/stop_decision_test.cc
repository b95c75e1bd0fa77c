#include "server/jobs/stop_decision.h"

#include <gtest/gtest.h>

#include <optional>

namespace wan::server {
namespace {

constexpr absl::Duration kLimit = absl::Seconds(100);

RunningOutlook Outlook(std::optional<absl::Duration> left, absl::Duration loading,
                       absl::Duration computed_again) {
  RunningOutlook outlook;
  outlook.left = left;
  outlook.loading = loading;
  outlook.computed_again = computed_again;
  return outlook;
}

absl::Duration Auto(const RunningOutlook& outlook, absl::Duration limit = kLimit) {
  return TimeToFinish(StopMode::kAuto, outlook, limit);
}

TEST(StopDecisionTest, TheOtherModesLookAtNothing) {
  const RunningOutlook outlook = Outlook(absl::Seconds(10), absl::Seconds(40), absl::Seconds(2));
  EXPECT_EQ(TimeToFinish(StopMode::kFinish, outlook, kLimit), kLimit);
  EXPECT_EQ(TimeToFinish(StopMode::kRequeue, outlook, kLimit), absl::ZeroDuration());
}

TEST(StopDecisionTest, FinishesWhatTakesNoLongerThanARestart) {
  for (const auto& [left, finishes] :
       {std::pair{0.0, true}, {41.999, true}, {42.0, true}, {42.001, false}, {1000.0, false}}) {
    EXPECT_EQ(Auto(Outlook(absl::Seconds(left), absl::Seconds(40), absl::Seconds(2))),
              finishes ? kLimit : absl::ZeroDuration())
        << left;
  }
}

TEST(StopDecisionTest, WhatIsComputedAgainCountsAsMuchAsTheLoading) {
  EXPECT_EQ(Auto(Outlook(absl::Seconds(30), absl::ZeroDuration(), absl::Seconds(31))), kLimit);
  EXPECT_EQ(Auto(Outlook(absl::Seconds(30), absl::ZeroDuration(), absl::Seconds(29))),
            absl::ZeroDuration());
}

TEST(StopDecisionTest, StopsAtOnceWhatWouldNotEndWithinTheLimit) {
  const RunningOutlook outlook =
      Outlook(absl::Seconds(100), absl::Seconds(3600), absl::ZeroDuration());
  EXPECT_EQ(Auto(outlook, absl::Seconds(100)), absl::Seconds(100));
  EXPECT_EQ(Auto(outlook, absl::Seconds(99.9)), absl::ZeroDuration());
  EXPECT_EQ(Auto(outlook, absl::ZeroDuration()), absl::ZeroDuration());
}

TEST(StopDecisionTest, WaitsForTheUnknownAsLongAsARestartTakes) {
  const RunningOutlook outlook = Outlook(std::nullopt, absl::Seconds(40), absl::Seconds(2));
  EXPECT_EQ(Auto(outlook), absl::Seconds(42));
  EXPECT_EQ(Auto(outlook, absl::Seconds(5)), absl::Seconds(5));
  EXPECT_EQ(Auto(Outlook(std::nullopt, absl::ZeroDuration(), absl::ZeroDuration())),
            absl::ZeroDuration());
}

TEST(StopDecisionTest, AJobThatCannotBeResumedHasTheWholeLimit) {
  RunningOutlook outlook = Outlook(absl::Hours(2), absl::Seconds(1), absl::Seconds(1));
  outlook.resumable = false;
  EXPECT_EQ(Auto(outlook), kLimit);
  EXPECT_EQ(TimeToFinish(StopMode::kRequeue, outlook, kLimit), absl::ZeroDuration());
}

}  // namespace
}  // namespace wan::server
