#include "engine/runtime/canary.h"

#include <ATen/TensorOperators.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "engine/api/errors.h"

namespace wan {
namespace {

using ::testing::HasSubstr;

std::string Message(const absl::Status& status) { return std::string(status.message()); }

TEST(CanaryTest, GivesTheSameBitsEachTime) {
  const auto once = RunDeviceCanary(at::kCPU, at::kFloat);
  const auto again = RunDeviceCanary(at::kCPU, at::kFloat);
  ASSERT_TRUE(once.ok()) << once.status();
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(once->digest, again->digest);
  EXPECT_EQ(once->digest.size(), 16u);
  EXPECT_THAT(once->setup, HasSubstr("LibTorch"));
}

TEST(CanaryTest, Bf16IsWithinItsRounding) {
  const auto canary = RunDeviceCanary(at::kCPU, at::kBFloat16);
  EXPECT_TRUE(canary.ok()) << canary.status();
}

TEST(CanaryTest, OneWrongNumberInTwoRunsIsSeen) {
  const at::Tensor right = ComputeCanary(at::kCPU, at::kFloat);
  at::Tensor flipped = right.clone();
  // The last bit of one number, as a cell of memory that holds its charge badly.
  flipped.view(at::kInt).narrow(0, 12345, 1).bitwise_xor_(1);
  const auto judged = JudgeCanary(right, flipped, right, at::kFloat);
  EXPECT_TRUE(IsDeviceLost(judged.status()));
  EXPECT_THAT(Message(judged.status()), HasSubstr("gave two results for the same computation"));
}

TEST(CanaryTest, AWrongResultIsSeenWithoutARecord) {
  const at::Tensor right = ComputeCanary(at::kCPU, at::kFloat);
  for (const double wrong : {1.01, 0.0, std::numeric_limits<double>::quiet_NaN()}) {
    const at::Tensor result = right * wrong;
    const auto judged = JudgeCanary(result, result, right, at::kFloat);
    EXPECT_TRUE(IsDeviceLost(judged.status())) << wrong;
    EXPECT_THAT(Message(judged.status()), HasSubstr("computes wrongly"));
  }
}

}  // namespace
}  // namespace wan
