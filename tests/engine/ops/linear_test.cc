#include "engine/ops/linear.h"

#include <ATen/ops/empty.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/engine/golden_tensors.h"
#include "tests/engine/random_tensor.h"

namespace wan {
namespace {

double GeluTanh(double x) {
  constexpr double kSqrtTwoOverPi = 0.7978845608028654;
  return 0.5 * x * (1 + std::tanh(kSqrtTwoOverPi * (x + 0.044715 * x * x * x)));
}

at::Tensor Plain(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, bool gelu) {
  at::Tensor out = at::empty({x.size(0), weight.size(0)}, at::kDouble);
  const at::Tensor wide_x = x.to(at::kDouble);
  const at::Tensor wide_weight = weight.to(at::kDouble);
  const at::Tensor wide_bias = bias.to(at::kDouble);
  const auto in = wide_x.accessor<double, 2>();
  const auto w = wide_weight.accessor<double, 2>();
  const auto b = wide_bias.accessor<double, 1>();
  auto result = out.accessor<double, 2>();
  for (int64_t row = 0; row < out.size(0); ++row) {
    for (int64_t column = 0; column < out.size(1); ++column) {
      double sum = b[column];
      for (int64_t i = 0; i < x.size(1); ++i) sum += in[row][i] * w[column][i];
      result[row][column] = gelu ? GeluTanh(sum) : sum;
    }
  }
  return out;
}

struct Shape {
  int64_t rows, in, out;
};

constexpr Shape kShapes[] = {{1, 8, 16}, {7, 64, 160}, {33, 160, 24}};

TEST(Linear, EqualsTheFormula) {
  for (const Shape& shape : kShapes) {
    const at::Tensor x = RandomTensor({shape.rows, shape.in}, 1);
    const at::Tensor weight = RandomTensor({shape.out, shape.in}, 2);
    const at::Tensor bias = RandomTensor({shape.out}, 3);
    at::Tensor out = at::empty({shape.rows, shape.out}, at::kFloat);
    Linear(x, weight, bias, out);
    EXPECT_LE(RelativeError(out, Plain(x, weight, bias, false)), 1e-6);
    LinearGelu(x, weight, bias, out);
    EXPECT_LE(RelativeError(out, Plain(x, weight, bias, true)), 1e-6);
  }
}

// The variant with erf differs from the one with tanh by up to 4.7e-4: within bf16's rounding of
// most values, but not within fp32's.
TEST(LinearGelu, IsTheTanhApproximation) {
  const at::Tensor x = RandomTensor({50, 1}, 4, at::kFloat, -2.2, 0.4);
  const at::Tensor weight = RandomTensor({1, 1}, 5, at::kFloat, 1, 0);
  const at::Tensor bias = RandomTensor({1}, 6, at::kFloat, 0, 0);
  at::Tensor out = at::empty({50, 1}, at::kFloat);
  LinearGelu(x, weight, bias, out);
  EXPECT_LE(RelativeError(out, Plain(x, weight, bias, true)), 1e-5);
}

TEST(Linear, RoundsOnlyInputsAndResultInBf16) {
  const at::Tensor x = RandomTensor({20, 512}, 7, at::kBFloat16);
  const at::Tensor weight = RandomTensor({64, 512}, 8, at::kBFloat16);
  const at::Tensor bias = RandomTensor({64}, 9, at::kBFloat16);
  at::Tensor out = at::empty({20, 64}, at::kBFloat16);
  Linear(x, weight, bias, out);
  // Half a unit in the last place is 2^-9.
  EXPECT_LE(RelativeError(out, Plain(x, weight, bias, false)), 2e-3);
}

}  // namespace
}  // namespace wan
