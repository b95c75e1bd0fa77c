#include "engine/device/finite_check.h"

#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <limits>

namespace wan {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

bool IsFinite(const at::Tensor& x) {
  FiniteCheck check;
  check.Begin(x);
  return check.IsFinite();
}

TEST(FiniteCheckTest, OneValueThatIsNotFiniteIsEnough) {
  for (const at::ScalarType dtype : {at::kFloat, at::kHalf, at::kBFloat16}) {
    at::Tensor x = at::zeros({3, 5, 7}, dtype);
    EXPECT_TRUE(IsFinite(x));
    for (const float value : {kInfinity, -kInfinity, std::numeric_limits<float>::quiet_NaN()}) {
      x[2][4][6] = value;
      EXPECT_FALSE(IsFinite(x)) << value;
    }
  }
}

TEST(FiniteCheckTest, InfinitiesDoNotCancelOut) {
  at::Tensor x = at::zeros({4}, at::kFloat);
  x[0] = kInfinity;
  x[1] = -kInfinity;
  EXPECT_FALSE(IsFinite(x));
}

TEST(FiniteCheckTest, ASumThatHasNoRoomInAHalfIsFinite) {
  EXPECT_TRUE(IsFinite(at::full({64, 64}, 6e4, at::kHalf)));
}

TEST(FiniteCheckTest, IsUsedAgain) {
  FiniteCheck check;
  check.Begin(at::full({2}, kInfinity, at::kFloat));
  EXPECT_FALSE(check.IsFinite());
  at::Tensor x = at::zeros({2}, at::kFloat);
  check.Begin(x);
  x.fill_(kInfinity);
  EXPECT_TRUE(check.IsFinite()) << "as it was when the check began";
}

}  // namespace
}  // namespace wan
