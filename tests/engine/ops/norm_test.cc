// The operators around the transformer's norms against their formulas in float64.
#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include <cmath>
#include <tuple>

#include "engine/ops/gate_residual_norm.h"
#include "engine/ops/layer_norm_modulate.h"
#include "engine/ops/rms_norm_rope.h"
#include "engine/ops/rotary_table.h"
#include "tests/engine/golden_tensors.h"
#include "tests/engine/random_tensor.h"

namespace wan {
namespace {

constexpr double kEps = 1e-6;

at::Tensor Wide(const at::Tensor& t) { return t.to(at::kDouble).contiguous(); }

int64_t TableRow(const at::Tensor& table, const at::Tensor& index, int64_t row) {
  return table.size(0) == 1 ? 0 : index.const_data_ptr<int32_t>()[row];
}

at::Tensor PlainLayerNorm(const at::Tensor& x, const at::Tensor& scale, const at::Tensor& shift,
                          const at::Tensor& index) {
  const at::Tensor wide = Wide(x);
  const at::Tensor wide_scale = Wide(scale);
  const at::Tensor wide_shift = Wide(shift);
  const auto in = wide.accessor<double, 2>();
  const auto factor = wide_scale.accessor<double, 2>();
  const auto offset = wide_shift.accessor<double, 2>();
  at::Tensor out = at::empty(x.sizes(), at::kDouble);
  auto result = out.accessor<double, 2>();
  const int64_t dim = x.size(1);
  for (int64_t r = 0; r < x.size(0); ++r) {
    double mean = 0;
    for (int64_t c = 0; c < dim; ++c) mean += in[r][c] / dim;
    double variance = 0;
    for (int64_t c = 0; c < dim; ++c) variance += (in[r][c] - mean) * (in[r][c] - mean) / dim;
    for (int64_t c = 0; c < dim; ++c) {
      result[r][c] =
          (in[r][c] - mean) / std::sqrt(variance + kEps) * factor[TableRow(scale, index, r)][c] +
          offset[TableRow(shift, index, r)][c];
    }
  }
  return out;
}

double Tolerance(at::ScalarType dtype) { return dtype == at::kFloat ? 1e-6 : 2e-3; }

// dtype of the result, rows of the tables.
class NormTest : public testing::TestWithParam<std::tuple<at::ScalarType, int64_t>> {
 protected:
  static constexpr int64_t kRows = 13;

  at::ScalarType dtype() const { return std::get<0>(GetParam()); }
  int64_t table_rows() const { return std::get<1>(GetParam()); }
  at::Tensor index() const {
    return table_rows() == 1 ? at::Tensor() : RandomIndex(kRows, table_rows(), 11);
  }
  // A table as the model has it: one of six vectors of each row.
  at::Tensor Table(int64_t dim, uint64_t seed, double mean) const {
    return RandomTensor({table_rows(), 6, dim}, seed, at::kFloat, mean).select(1, 2);
  }
};

TEST_P(NormTest, LayerNormModulateEqualsTheFormula) {
  for (const int64_t dim : {8, 64, 200}) {
    const at::Tensor x = RandomTensor({kRows, dim}, 1, at::kFloat, 3.0, 2.0);
    const at::Tensor scale = Table(dim, 2, 1);
    const at::Tensor shift = Table(dim, 3, 0);
    at::Tensor out = at::empty({kRows, dim}, dtype());
    LayerNormModulate(x, scale, shift, index(), kEps, out);
    EXPECT_LE(RelativeError(out, PlainLayerNorm(x, scale, shift, index())), Tolerance(dtype()));
  }
}

TEST_P(NormTest, GateResidualNormEqualsTheFormula) {
  for (const int64_t dim : {8, 64, 200}) {
    const at::Tensor start = RandomTensor({kRows, dim}, 1, at::kFloat, 3.0, 2.0);
    const at::Tensor y = RandomTensor({kRows, dim}, 4, dtype());
    const at::Tensor gate = Table(dim, 5, 0.5);
    // One vector for all rows beside a gate that differs, as before the cross-attention.
    const at::Tensor scale = RandomTensor({1, dim}, 2, at::kFloat, 1);
    const at::Tensor shift = RandomTensor({1, dim}, 3);

    at::Tensor sum = Wide(start);
    for (int64_t r = 0; r < kRows; ++r) {
      sum.select(0, r).add_(Wide(y).select(0, r) *
                            Wide(gate).select(0, TableRow(gate, index(), r)));
    }
    at::Tensor x = start.clone();
    at::Tensor out = at::empty({kRows, dim}, dtype());
    GateResidualNorm(y, gate, x, scale, shift, index(), kEps, out);
    EXPECT_LE(RelativeError(x, sum), 1e-6);
    EXPECT_LE(RelativeError(out, PlainLayerNorm(sum, scale, shift, {})), Tolerance(dtype()));
  }
}

TEST_P(NormTest, GateResidualNormAddsAllWithoutAGate) {
  const at::Tensor start = RandomTensor({kRows, 64}, 1);
  const at::Tensor y = RandomTensor({kRows, 64}, 4, dtype());
  const at::Tensor scale = Table(64, 2, 1);
  const at::Tensor shift = Table(64, 3, 0);
  at::Tensor x = start.clone();
  at::Tensor out = at::empty({kRows, 64}, dtype());
  GateResidualNorm(y, {}, x, scale, shift, index(), kEps, out);
  const at::Tensor sum = Wide(start) + Wide(y);
  EXPECT_LE(RelativeError(x, sum), 1e-6);
  EXPECT_LE(RelativeError(out, PlainLayerNorm(sum, scale, shift, index())), Tolerance(dtype()));
}

TEST_P(NormTest, GateResidualNormMayWriteOverItsInput) {
  const at::Tensor y = RandomTensor({kRows, 64}, 4, dtype());
  const at::Tensor gate = Table(64, 5, 0.5);
  const at::Tensor scale = Table(64, 2, 1);
  const at::Tensor shift = Table(64, 3, 0);
  at::Tensor x = RandomTensor({kRows, 64}, 1);
  at::Tensor same_x = x.clone();
  at::Tensor out = at::empty({kRows, 64}, dtype());
  GateResidualNorm(y, gate, x, scale, shift, index(), kEps, out);
  at::Tensor same = y.clone();
  GateResidualNorm(same, gate, same_x, scale, shift, index(), kEps, same);
  EXPECT_TRUE(at::equal(same, out));
  EXPECT_TRUE(at::equal(same_x, x));
}

INSTANTIATE_TEST_SUITE_P(All, NormTest,
                         testing::Combine(testing::Values(at::kFloat, at::kBFloat16),
                                          testing::Values(1, 2, 5)));

// A mean far from zero must not cost the variance its digits.
TEST(LayerNormModulate, StandsALargeMean) {
  const at::Tensor x = RandomTensor({4, 256}, 1, at::kFloat, 1000.0, 1.0);
  const at::Tensor one = RandomTensor({1, 256}, 2, at::kFloat, 1, 0);
  const at::Tensor zero = RandomTensor({1, 256}, 3, at::kFloat, 0, 0);
  at::Tensor out = at::empty({4, 256}, at::kFloat);
  LayerNormModulate(x, one, zero, {}, kEps, out);
  EXPECT_LE(RelativeError(out, PlainLayerNorm(x, one, zero, {})), 1e-4);
}

at::Tensor PlainRmsNormRope(const at::Tensor& x, const at::Tensor& weight,
                            const at::Tensor& rotary) {
  const int64_t parts = weight.size(0);
  const int64_t dim = weight.size(1);
  at::Tensor out = Wide(x).clone();
  const at::Tensor wide_weight = Wide(weight);
  const auto factor = wide_weight.accessor<double, 2>();
  auto values = out.accessor<double, 2>();
  for (int64_t r = 0; r < x.size(0); ++r) {
    for (int64_t p = 0; p < parts; ++p) {
      double squares = 0;
      for (int64_t c = 0; c < dim; ++c) {
        squares += values[r][p * dim + c] * values[r][p * dim + c];
      }
      for (int64_t c = 0; c < dim; ++c) {
        values[r][p * dim + c] *= factor[p][c] / std::sqrt(squares / dim + kEps);
      }
      if (!rotary.defined()) continue;
      const at::Tensor wide_rotary = Wide(rotary);
      const auto turn = wide_rotary.accessor<double, 2>();
      const int64_t token = r % rotary.size(0);
      const int64_t pairs = rotary.size(1) / 2;
      for (int64_t c = 0; c < dim; c += 2) {
        const double cos = turn[token][c / 2 % pairs];
        const double sin = turn[token][pairs + c / 2 % pairs];
        const double even = values[r][p * dim + c];
        const double odd = values[r][p * dim + c + 1];
        values[r][p * dim + c] = even * cos - odd * sin;
        values[r][p * dim + c + 1] = even * sin + odd * cos;
      }
    }
  }
  return out;
}

// dtype, parts, whether positions are rotated.
class RmsNormRopeTest : public testing::TestWithParam<std::tuple<at::ScalarType, int64_t, bool>> {};

TEST_P(RmsNormRopeTest, EqualsTheFormulaInsideAWiderProduct) {
  const auto [dtype, parts, rotates] = GetParam();
  for (const int64_t heads : {1, 2, 5}) {
    constexpr int64_t kHeadDim = 32;
    const int64_t dim = heads * kHeadDim;
    const at::Tensor rotary = rotates ? RotaryTable({2, 2, 3}, kHeadDim, at::kCPU) : at::Tensor();
    // Two batch entries, and a part beside the others that stays as it is.
    const at::Tensor product = RandomTensor({24, (parts + 1) * dim}, 1, dtype, 0.5, 3.0);
    const at::Tensor before = product.clone();
    const at::Tensor weight = RandomTensor({parts, dim}, 2, at::kFloat, 1, 0.3);
    at::Tensor x = product.narrow(1, 0, parts * dim);
    RmsNormRope(x, weight, kEps, rotary);
    EXPECT_LE(RelativeError(x, PlainRmsNormRope(before.narrow(1, 0, parts * dim), weight, rotary)),
              Tolerance(dtype));
    EXPECT_TRUE(at::equal(product.narrow(1, parts * dim, dim), before.narrow(1, parts * dim, dim)));
  }
}

INSTANTIATE_TEST_SUITE_P(All, RmsNormRopeTest,
                         testing::Combine(testing::Values(at::kFloat, at::kBFloat16),
                                          testing::Values(1, 2), testing::Bool()));

}  // namespace
}  // namespace wan
