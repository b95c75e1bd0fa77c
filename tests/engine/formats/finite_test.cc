#include "engine/formats/finite.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

namespace wan {
namespace {

template <typename T>
std::optional<size_t> Find(const std::vector<T>& values, DType dtype) {
  return FirstNotFinite(std::as_bytes(std::span(values)), dtype);
}

TEST(FiniteTest, FindsTheFirstOfManyElements) {
  std::vector<float> values(10'000, std::numeric_limits<float>::max());
  EXPECT_EQ(Find(values, DType::kFloat32), std::nullopt);
  values[9'999] = std::nanf("");
  EXPECT_EQ(Find(values, DType::kFloat32), 9'999U);
  values[4'096] = -HUGE_VALF;
  EXPECT_EQ(Find(values, DType::kFloat32), 4'096U);
  values[0] = HUGE_VALF;
  EXPECT_EQ(Find(values, DType::kFloat32), 0U);
}

TEST(FiniteTest, KnowsTheExponentsOfAllDtypes) {
  EXPECT_EQ(Find<uint16_t>({0x7BFF, 0xFBFF, 0x7C00}, DType::kFloat16), 2U);
  EXPECT_EQ(Find<uint16_t>({0x7F7F, 0xFF7F, 0xFF80}, DType::kBFloat16), 2U);
  EXPECT_EQ(Find<double>({1e308, NAN}, DType::kFloat64), 1U);
  EXPECT_EQ(Find<uint16_t>({0x7BFF, 0x0001, 0}, DType::kFloat16), std::nullopt);
  EXPECT_EQ(Find<int32_t>({-1}, DType::kInt32), std::nullopt);
  EXPECT_EQ(Find<float>({}, DType::kFloat32), std::nullopt);
}

}  // namespace
}  // namespace wan
