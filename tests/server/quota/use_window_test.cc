#include "server/quota/use_window.h"

#include "gtest/gtest.h"

namespace wan::server {
namespace {

const absl::Time kStart = absl::FromUnixSeconds(60 * 1'000'000);

TEST(UseWindowTest, WhatWasUsedLeavesADayAfterItsMinute) {
  UseWindow window;
  window.Add(absl::Seconds(10), kStart + absl::Seconds(59));
  window.Add(absl::Seconds(5), kStart + absl::Seconds(60));
  const absl::Time gone = kStart + absl::Minutes(1) + absl::Hours(24);
  EXPECT_EQ(window.Sum(gone - absl::Nanoseconds(1)), absl::Seconds(15));
  EXPECT_EQ(window.Sum(gone), absl::Seconds(5));
  EXPECT_EQ(window.Sum(gone + absl::Minutes(1)), absl::ZeroDuration());
}

TEST(UseWindowTest, TellsWhenThereIsRoom) {
  UseWindow window;
  EXPECT_EQ(window.TimeUntil(absl::ZeroDuration(), kStart), absl::ZeroDuration());
  window.Add(absl::Seconds(30), kStart + absl::Hours(2));
  window.Add(absl::Seconds(10), kStart);  // in no order
  const absl::Time now = kStart + absl::Hours(3);
  EXPECT_EQ(window.TimeUntil(absl::Seconds(40), now), absl::ZeroDuration());
  EXPECT_EQ(window.TimeUntil(absl::Seconds(39), now), absl::Hours(21) + absl::Minutes(1));
  EXPECT_EQ(window.TimeUntil(absl::Seconds(30), now), absl::Hours(21) + absl::Minutes(1));
  EXPECT_EQ(window.TimeUntil(absl::Seconds(29), now), absl::Hours(23) + absl::Minutes(1));
  // And there is.
  const absl::Time then = now + absl::Hours(23) + absl::Minutes(1);
  EXPECT_EQ(window.Sum(then - absl::Seconds(1)), absl::Seconds(30));
  EXPECT_EQ(window.Sum(then), absl::ZeroDuration());
}

}  // namespace
}  // namespace wan::server
