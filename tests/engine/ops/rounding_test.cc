#include "engine/ops/rounding.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/scaled_dot_product_attention.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "engine/ops/gate_residual_norm.h"
#include "engine/ops/layer_norm_modulate.h"
#include "engine/ops/rounded_attention.h"
#include "engine/ops/rounded_linear.h"
#include "tests/engine/golden_tensors.h"
#include "tests/engine/random_tensor.h"
#include "tests/support/peak_allocator.h"

namespace wan {
namespace {

// Half a step of e4m3, which has three bits after the first.
constexpr double kLargestError = 1.0 / 16;
// The root mean square of the rounding error of normal numbers.
constexpr double kUsualError = 2.65e-2;

RoundedRows Round(const at::Tensor& x, at::ScalarType code = at::kFloat8_e4m3fn) {
  RoundedRows out = MakeRounded(x.size(0), x.size(1), x.device(), code);
  RoundRows(x, out);
  return out;
}

TEST(RoundingTest, ScalesEachRowToTheWholeRange) {
  const at::Tensor x = at::tensor({1.0, -2.0, 0.5, 0.0, 1000.0, 500.0}, at::kFloat).view({2, 3});
  const RoundedRows rounded = Round(x);
  EXPECT_TRUE(at::equal(rounded.scales, at::tensor({2.0 / 448, 1000.0 / 448}, at::kFloat)));
  EXPECT_TRUE(
      at::equal(rounded.codes.to(at::kFloat),
                at::tensor({224.0, -448.0, 112.0, 0.0, 448.0, 224.0}, at::kFloat).view({2, 3})));
}

TEST(RoundingTest, LosesAtMostASixteenthOfAValue) {
  for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16}) {
    const at::Tensor x = RandomTensor({40, 512}, 1, dtype);
    const at::Tensor back = Round(x).ToFloat();
    const at::Tensor wide = x.to(at::kFloat);
    // Values below the smallest normal number of e4m3 keep an absolute precision instead.
    const at::Tensor smallest = wide.abs().amax(1, true) / (448 * 64);
    const at::Tensor allowed = at::maximum(wide.abs(), smallest) * kLargestError * 1.0001;
    EXPECT_TRUE(((back - wide).abs() <= allowed).all().item().toBool());
    EXPECT_NEAR(RelativeError(back, wide), kUsualError, 2e-3);
  }
}

TEST(RoundingTest, ScalesEachRowToTheWholeRangeOfInt8) {
  const at::Tensor x = at::tensor({1.0, -2.0, 0.51, 0.0, 1000.0, 496.0}, at::kFloat).view({2, 3});
  const RoundedRows rounded = Round(x, at::kChar);
  EXPECT_TRUE(at::equal(rounded.scales, at::tensor({2.0 / 127, 1000.0 / 127}, at::kFloat)));
  EXPECT_TRUE(
      at::equal(rounded.codes.to(at::kFloat),
                at::tensor({64.0, -127.0, 32.0, 0.0, 127.0, 63.0}, at::kFloat).view({2, 3})));
}

TEST(RoundingTest, Int8LosesAtMostHalfAStepOfItsRow) {
  for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16}) {
    const at::Tensor x = RandomTensor({40, 4096}, 1, dtype);
    const at::Tensor back = Round(x, at::kChar).ToFloat();
    const at::Tensor wide = x.to(at::kFloat);
    const at::Tensor allowed = wide.abs().amax(1, true) * (1.0001 / 254);
    EXPECT_TRUE(((back - wide).abs() <= allowed).all().item().toBool());
    EXPECT_LT(RelativeError(back, wide), 1e-2);
  }
}

TEST(RoundingTest, RoundsWhereAMatrixStands) {
  for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16}) {
    const at::Tensor x = RandomTensor({9, 64}, 2, dtype);
    const RoundedRows apart = Round(x);
    const RoundedRows inside = RoundedIn(x, 64);
    RoundRows(x, inside);
    EXPECT_EQ(inside.codes.const_data_ptr(), x.const_data_ptr());
    EXPECT_TRUE(at::equal(inside.ToFloat(), apart.ToFloat()));
  }
}

TEST(RoundingTest, RestoresRowsInTheirDtype) {
  for (const at::ScalarType code : {at::kFloat8_e4m3fn, at::kChar}) {
    // More rows than a CPU restores at a time.
    const RoundedRows rounded = Round(RandomTensor({1100, 1000}, 12), code);
    for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16}) {
      at::Tensor restored = at::empty({1100, 1000}, at::TensorOptions().dtype(dtype));
      RestoreRows(rounded, restored);
      EXPECT_TRUE(at::equal(restored, rounded.ToFloat().to(dtype)));
    }
    const at::Tensor index = at::tensor({7, 1099, 7}, at::kLong);
    const at::Tensor selected = rounded.Select(index).ToFloat();
    EXPECT_TRUE(at::equal(selected, rounded.ToFloat().index_select(0, index)));
    EXPECT_TRUE(at::equal(rounded.Rows(3, 4).ToFloat(), rounded.ToFloat().narrow(0, 3, 4)));
  }
}

TEST(RoundingTest, KeepsZerosAndShowsWhatIsNotFinite) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float infinity = std::numeric_limits<float>::infinity();
  const at::Tensor x = at::tensor({0.f, 0.f, 1.f, nan, infinity, 1.f}, at::kFloat).view({3, 2});
  const RoundedRows rounded = Round(x);
  EXPECT_TRUE(at::equal(rounded.ToFloat()[0], x[0]));
  const at::Tensor weight = RandomTensor({4, 2}, 3);
  at::Tensor out = at::empty({3, 4});
  RoundedLinear(rounded, Round(weight), at::zeros({4}), Activation::kNone, out);
  EXPECT_TRUE((out[0] == 0).all().item().toBool());
  EXPECT_FALSE(out[1].isfinite().any().item().toBool());
  EXPECT_FALSE(out[2].isfinite().any().item().toBool());
}

TEST(RoundingTest, NormsAreRoundedAsTheyAre) {
  constexpr double kEps = 1e-6;
  const at::Tensor scale = RandomTensor({1, 64}, 4);
  const at::Tensor shift = RandomTensor({1, 64}, 5);
  const at::Tensor gate = RandomTensor({1, 64}, 6);
  for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16}) {
    at::Tensor x = RandomTensor({7, 64}, 7);
    at::Tensor plain_x = x.clone();
    at::Tensor plain = at::empty({7, 64});
    LayerNormModulate(x, scale, shift, {}, kEps, plain);
    const RoundedRows rounded = MakeRounded(7, 64, at::kCPU);
    LayerNormModulate(x, scale, shift, {}, kEps, rounded);
    EXPECT_TRUE(at::equal(rounded.ToFloat(), Round(plain).ToFloat()));

    at::Tensor y = RandomTensor({7, 64}, 8, dtype);
    GateResidualNorm(y, gate, plain_x, scale, shift, {}, kEps, plain);
    const RoundedRows inside = RoundedIn(y, 64);
    GateResidualNorm(y, gate, x, scale, shift, {}, kEps, inside);
    EXPECT_TRUE(at::equal(x, plain_x));
    EXPECT_TRUE(at::equal(inside.ToFloat(), Round(plain).ToFloat()));
  }
}

TEST(RoundedLinearTest, MultipliesTheRoundedValues) {
  const at::Tensor x = RandomTensor({11, 96}, 9);
  const at::Tensor weight = RandomTensor({32, 96}, 10);
  const at::Tensor bias = RandomTensor({32}, 11);
  const RoundedRows rounded = Round(x);
  const RoundedRows rounded_weight = Round(weight);
  const at::Tensor expected = at::linear(rounded.ToFloat(), rounded_weight.ToFloat(), bias);
  at::Tensor out = at::empty({11, 32});
  RoundedLinear(rounded, rounded_weight, bias, Activation::kNone, out);
  EXPECT_LE(RelativeError(out, expected), 1e-6);
  RoundedLinear(rounded, rounded_weight, bias, Activation::kGeluTanh, out);
  EXPECT_LE(RelativeError(out, at::gelu(expected, "tanh")), 1e-6);
  // Both inputs lose 2.65 %; the bias, which is a part of the result, loses nothing.
  EXPECT_NEAR(RelativeError(expected, at::linear(x, weight, bias)), 3.75e-2, 8e-3);
}

struct Heads {
  at::Tensor query, key, value;  // [B, n, heads, head_dim]
};

// As the transformer has them: parts of one packed product.
Heads Packed(int64_t batch, int64_t tokens, int64_t heads, int64_t head_dim) {
  const at::Tensor packed = RandomTensor({batch, tokens, 3, heads, head_dim}, 12);
  return {packed.select(2, 0), packed.select(2, 1), packed.select(2, 2)};
}

at::Tensor Exact(const Heads& in) {
  return at::scaled_dot_product_attention(in.query.transpose(1, 2), in.key.transpose(1, 2),
                                          in.value.transpose(1, 2))
      .transpose(1, 2)
      .contiguous();
}

at::Tensor Rounded(Heads in) {
  at::Tensor out = at::empty(in.query.sizes(), in.query.options());
  const RoundedHeads query = RoundQueries(in.query);
  RoundedAttentionInto(query, RoundKeys(in.key), RoundValues(in.value), out);
  return out;
}

TEST(RoundedAttentionTest, IsNearTheExactOne) {
  for (const int64_t head_dim : {12, 64, 128}) {
    const Heads in = Packed(2, 500, 3, head_dim);
    const at::Tensor exact = Exact(in);
    EXPECT_LE(RelativeError(Rounded(in), exact), 2e-2) << head_dim;
  }
}

TEST(RoundedAttentionTest, OutliersAndMeansCostLittle) {
  Heads in = Packed(1, 600, 2, 128);
  in.query.select(3, 17).mul_(4).add_(6);
  in.key.select(3, 17).mul_(4).add_(6);
  in.query.mul_(0.4);
  const at::Tensor exact = Exact(in);
  EXPECT_LE(RelativeError(Rounded(in), exact), 3e-2);
}

TEST(RoundedAttentionTest, PartsOfTheQueriesGiveTheSame) {
  Heads in = Packed(1, 300, 2, 64);
  at::Tensor whole = at::empty(in.query.sizes(), in.query.options());
  const RoundedHeads query = RoundQueries(in.query);
  const RoundedHeads key = RoundKeys(in.key);
  const RoundedValues value = RoundValues(in.value);
  RoundedAttentionInto(query, key, value, whole);
  at::Tensor part = at::empty({1, 44, 2, 64});
  RoundedAttentionInto(query.Queries(256, 44), key, value, part);
  EXPECT_LE(RelativeError(part, whole.narrow(1, 256, 44)), 1e-6);
}

// On a CPU no plan counts them.
TEST(RoundedAttentionTest, TheReferenceTakesLittleMemory) {
  PeakAllocator memory;
  Heads in = Packed(1, 1024, 32, 64);
  at::Tensor out = at::empty(in.query.sizes(), in.query.options());
  const uint64_t bytes = out.nbytes();
  const auto peak_of = [&](const auto& work) {
    memory.Begin();
    work();
    return memory.peak();
  };
  EXPECT_LT(peak_of([&] { RoundQueries(in.query); }), bytes / 4);
  EXPECT_LT(peak_of([&] { RoundKeys(in.key); }), bytes / 4);
  EXPECT_LT(peak_of([&] { RoundValues(in.value); }), bytes / 2) << "codes included";
  Heads other = Packed(1, 1024, 32, 64);
  const RoundedHeads query = RoundQueries(other.query);
  const RoundedHeads key = RoundKeys(other.key);
  const RoundedValues value = RoundValues(other.value);
  EXPECT_LT(peak_of([&] { RoundedAttentionInto(query, key, value, out); }), bytes / 2);
}

TEST(RoundedAttentionTest, ZerosAttendToAllAlike) {
  Heads in = Packed(1, 200, 1, 32);
  in.query.zero_();
  const at::Tensor mean = in.value.mean(1, true).expand(in.query.sizes());
  EXPECT_LE(RelativeError(Rounded(in), mean), 1e-5);
}

TEST(RoundedAttentionTest, TheValuesMeanIsExact) {
  Heads in = Packed(1, 300, 2, 64);
  in.value.select(2, 1).add_(1000);
  const at::Tensor exact = Exact(in);
  EXPECT_LE(RelativeError(Rounded(in), exact), 3e-5);
}

TEST(RoundedAttentionTest, TheMeanOfAllValuesKeepsItsPrecision) {
  // In bf16 there are fewer values than codes in places, so that their rounding has a mean.
  Heads in = Packed(1, 20000, 1, 64);
  in.query = in.query.narrow(1, 0, 16).mul(1e-3).clone();
  in.value = in.value.to(at::kBFloat16).to(at::kFloat).add_(0.03);
  const at::Tensor exact = Exact(in);
  EXPECT_LE(RelativeError(Rounded(in), exact), 2e-3);
}

TEST(RoundedAttentionTest, TilesOfSmallProbabilitiesCountAsMuchAsTheyShould) {
  // The scores of one tile are far above those of another, or as far below, in both orders.
  for (const double difference : {6.0, -6.0, 60.0, -60.0}) {
    Heads in = Packed(1, 2 * kRoundedKeyTile, 1, 64);
    in.query.select(3, 0).fill_(4);
    in.key.narrow(1, 0, kRoundedKeyTile).select(3, 0).add_(difference);
    const at::Tensor exact = Exact(in);
    EXPECT_LE(RelativeError(Rounded(in), exact), 4e-2) << difference;
  }
}

TEST(RoundedAttentionTest, ShowsWhatIsNotFinite) {
  for (const int64_t token : {3, 299}) {
    for (const int input : {0, 1, 2}) {
      Heads in = Packed(1, 300, 2, 64);
      at::Tensor& spoilt = input == 0 ? in.query : input == 1 ? in.key : in.value;
      spoilt.select(1, token).select(1, 1).select(1, 5).fill_(
          std::numeric_limits<double>::quiet_NaN());
      const at::Tensor finite = Rounded(in).isfinite();
      EXPECT_TRUE(finite.select(2, 0).all().item().toBool());
      EXPECT_FALSE(finite.select(2, 1).select(1, token).all().item().toBool());
      EXPECT_EQ(finite.select(2, 1).select(1, 0).all().item().toBool(), input == 0);
    }
  }
}

TEST(RoundedValuesTest, StandInTheOrderOfTheProduct) {
  at::Tensor value = at::zeros({1, 20, 1, 1});
  for (int64_t i = 0; i < 20; ++i) value.select(1, i).fill_(static_cast<double>(i));
  const RoundedValues rounded = RoundValues(value);
  ASSERT_EQ(rounded.codes.sizes(), (at::IntArrayRef{1, 1, 1, kRoundedKeyTile}));
  const at::Tensor wide = (rounded.codes.to(at::kFloat) - kMeanValueCode) * rounded.scales.item() +
                          rounded.means.item();
  const std::vector<double> order = {0, 1, 8, 9, 2, 3, 10, 11, 4, 5, 12, 13, 6, 7, 14, 15, 16, 17};
  for (size_t i = 0; i < order.size(); ++i) {
    EXPECT_NEAR(wide.flatten()[static_cast<int64_t>(i)].item().toDouble(), order[i], 0.05) << i;
  }
}

}  // namespace
}  // namespace wan
