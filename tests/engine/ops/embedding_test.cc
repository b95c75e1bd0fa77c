#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "engine/ops/rotary_table.h"
#include "engine/ops/sinusoidal_embedding.h"

namespace wan {
namespace {

// The table against its definition, one token and pair after the other.
void ExpectRotaryTable(const std::array<int64_t, 3>& grid, int64_t head_dim,
                       const std::array<int64_t, 3>& channels) {
  const at::Tensor table = RotaryTable(grid, head_dim, at::kCPU);
  ASSERT_EQ(table.sizes(), at::IntArrayRef({grid[0] * grid[1] * grid[2], head_dim}));
  ASSERT_EQ(table.scalar_type(), at::kFloat);
  const auto values = table.accessor<float, 2>();
  int64_t token = 0;
  for (int64_t f = 0; f < grid[0]; ++f) {
    for (int64_t h = 0; h < grid[1]; ++h) {
      for (int64_t w = 0; w < grid[2]; ++w, ++token) {
        const std::array<int64_t, 3> position{f, h, w};
        int64_t pair = 0;
        for (int axis = 0; axis < 3; ++axis) {
          for (int64_t i = 0; i < channels[axis] / 2; ++i, ++pair) {
            const double angle =
                position[axis] / std::pow(10000.0, 2.0 * i / static_cast<double>(channels[axis]));
            ASSERT_NEAR(values[token][pair], std::cos(angle), 1e-7) << token << ", " << pair;
            ASSERT_NEAR(values[token][head_dim / 2 + pair], std::sin(angle), 1e-7)
                << token << ", " << pair;
          }
        }
      }
    }
  }
}

TEST(RotaryTable, SplitsTheChannelsOfWan) { ExpectRotaryTable({3, 4, 5}, 128, {44, 42, 42}); }

TEST(RotaryTable, SplitsOtherWidths) {
  ExpectRotaryTable({2, 3, 4}, 32, {12, 10, 10});
  ExpectRotaryTable({2, 1, 7}, 24, {8, 8, 8});
  ExpectRotaryTable({4, 2, 2}, 10, {6, 2, 2});
}

TEST(RotaryTable, KeepsLargePositionsExact) { ExpectRotaryTable({1, 1000, 2}, 16, {8, 4, 4}); }

TEST(SinusoidalEmbedding, HasCosinesThenSinesOfExactAngles) {
  const std::array<double, 4> timesteps{0, 20, 937.5, 999};
  const at::Tensor embedding = SinusoidalEmbedding(at::tensor(timesteps, at::kDouble), 256);
  ASSERT_EQ(embedding.sizes(), at::IntArrayRef({4, 256}));
  ASSERT_EQ(embedding.scalar_type(), at::kFloat);
  const auto values = embedding.accessor<float, 2>();
  for (int row = 0; row < 4; ++row) {
    for (int i = 0; i < 128; ++i) {
      const double angle = timesteps[row] / std::pow(10000.0, i / 128.0);
      // Angles in fp32 would be off by up to 3e-5 at 999.
      EXPECT_NEAR(values[row][i], std::cos(angle), 1e-7) << timesteps[row] << ", " << i;
      EXPECT_NEAR(values[row][128 + i], std::sin(angle), 1e-7) << timesteps[row] << ", " << i;
    }
  }
}

}  // namespace
}  // namespace wan
