#include "server/quota/recent_use.h"

#include <string>

#include "gtest/gtest.h"

namespace wan::server {
namespace {

const absl::Time kStart = absl::FromUnixSeconds(1'000'000);

TEST(RecentUseTest, ASecondCountsHalfAfterAnHour) {
  RecentUse use;
  EXPECT_EQ(use.Of("alice", kStart), absl::ZeroDuration());
  use.Add("alice", absl::Seconds(80), kStart);
  EXPECT_EQ(use.Of("alice", kStart), absl::Seconds(80));
  EXPECT_EQ(use.Of("alice", kStart + absl::Hours(1)), absl::Seconds(40));
  EXPECT_EQ(use.Of("alice", kStart + absl::Hours(3)), absl::Seconds(10));
  use.Add("alice", absl::Seconds(5), kStart + absl::Hours(3));
  EXPECT_EQ(use.Of("alice", kStart + absl::Hours(3)), absl::Seconds(15));
  EXPECT_EQ(use.Of("bob", kStart), absl::ZeroDuration());
}

TEST(RecentUseTest, WhatWasUsedEarlierCountsAsItDoesNow) {
  RecentUse use;
  use.Add("alice", absl::Seconds(8), kStart);
  use.Add("alice", absl::Seconds(80), kStart - absl::Hours(1));
  EXPECT_EQ(use.Of("alice", kStart), absl::Seconds(48));
}

TEST(RecentUseTest, AnEstimateIsReplacedByWhatWasUsed) {
  RecentUse use;
  use.Add("alice", absl::Seconds(64), kStart);
  const absl::Time end = kStart + absl::Hours(1);
  use.Add("alice", -absl::Seconds(64), kStart);
  EXPECT_EQ(use.Of("alice", end), absl::ZeroDuration());
  use.Add("alice", absl::Seconds(3), end);
  EXPECT_EQ(use.Of("alice", end), absl::Seconds(3));
}

TEST(RecentUseTest, AClockThatIsSetBackMakesNothingCountMore) {
  RecentUse use;
  use.Add("alice", absl::Seconds(80), kStart);
  EXPECT_EQ(use.Of("alice", kStart - absl::Hours(2)), absl::Seconds(80));
}

TEST(RecentUseTest, ForgetsWhoHasUsedNothingLately) {
  RecentUse use;
  for (int i = 0; i < 1024; ++i) use.Add("old " + std::to_string(i), absl::Seconds(1), kStart);
  const absl::Time later = kStart + absl::Hours(24);
  use.Add("alice", absl::Seconds(1), later);
  EXPECT_EQ(use.size(), 1);
  // Whoever still counts is remembered, however many there are.
  for (int i = 0; i < 3000; ++i) use.Add("new " + std::to_string(i), absl::Seconds(1), later);
  EXPECT_EQ(use.size(), 3001);
}

}  // namespace
}  // namespace wan::server
