#include "engine/planning/device_budget.h"

#include <gtest/gtest.h>

namespace wan {
namespace {

constexpr uint64_t kGiB = uint64_t{1} << 30;

TEST(DeviceBudgetTest, WithoutALimitKernelsThatComeLaterStillFit) {
  const auto budget = ShareDeviceMemory(80 * kGiB, 0);
  ASSERT_TRUE(budget.ok()) << budget.status();
  EXPECT_EQ(budget->allocator_bytes, 0u);
  EXPECT_LT(budget->job_bytes, 80 * kGiB - kLateKernelBytes);
  EXPECT_GT(budget->job_bytes, 77 * kGiB);
}

TEST(DeviceBudgetTest, ALimitHoldsTheAllocatorAndCountsWhatIsOutside) {
  const auto budget = ShareDeviceMemory(139 * kGiB, 24 * kGiB);
  ASSERT_TRUE(budget.ok()) << budget.status();
  EXPECT_EQ(budget->allocator_bytes, 23 * kGiB);
  EXPECT_LT(budget->job_bytes, 23 * kGiB);
  EXPECT_GE(budget->job_bytes, 22 * kGiB);
}

TEST(DeviceBudgetTest, ALimitBeyondWhatIsFreeIsNone) {
  const auto budget = ShareDeviceMemory(20 * kGiB, 24 * kGiB);
  ASSERT_TRUE(budget.ok()) << budget.status();
  EXPECT_EQ(budget->allocator_bytes, 0u);
  EXPECT_LT(budget->job_bytes, 20 * kGiB);
}

TEST(DeviceBudgetTest, ALimitThatLeavesNothingIsRefused) {
  EXPECT_EQ(ShareDeviceMemory(139 * kGiB, kGiB).status().code(),
            absl::StatusCode::kInvalidArgument);
  // A card that others have filled: jobs are refused, not planned without a limit.
  EXPECT_GT(ShareDeviceMemory(1, 0)->job_bytes, 0u);
}

TEST(DeviceBudgetTest, WhatOthersTakeIsNotThereAndWhatWeHoldIs) {
  const uint64_t at_start = ShareDeviceMemory(80 * kGiB, 0)->job_bytes;
  // Ours: nothing has changed for jobs.
  EXPECT_GE(PresentJobBytes(50 * kGiB, 30 * kGiB), at_start);
  // Others': it is gone.
  EXPECT_LT(PresentJobBytes(50 * kGiB, 0), 50 * kGiB);
  EXPECT_GT(PresentJobBytes(50 * kGiB, 0), 48 * kGiB);
  EXPECT_GT(PresentJobBytes(0, 0), 0u);
}

}  // namespace
}  // namespace wan
