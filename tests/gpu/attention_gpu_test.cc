// The attention kernel for Hopper GPUs against the formula in float64 on the GPU, and its error
// beside cuDNN's on the same inputs.
#include <ATen/TensorOperators.h>
#include <ATen/ops/_scaled_dot_product_cudnn_attention.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/linspace.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/scaled_dot_product_attention.h>
#include <ATen/ops/softmax.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <ostream>

#include "engine/ops/attention.h"
#include "engine/ops/cuda_ops.h"
#include "tests/engine/golden_tensors.h"
#include "tests/engine/random_tensor.h"

namespace wan {
namespace {

constexpr int64_t kHeadDim = 128;
// Rounding the probabilities and the result to bf16 costs 1.5e-3 to 2.4e-3. Two kernels that round
// the same way differ in the third digit.
constexpr double kTolerance = 3e-3;
constexpr double kBesideCudnn = 1.03;

bool IsHopper() { return GetCudaOps().compute_capability(0) == 90; }

struct Inputs {
  at::Tensor query, key, value;  // [B, n, heads, 128] in bf16
};

at::Tensor Normal(at::IntArrayRef shape, uint64_t seed) {
  return RandomTensor(shape, seed).to(at::kCUDA);
}

Inputs Rounded(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value) {
  return {query.to(at::kBFloat16), key.to(at::kBFloat16), value.to(at::kBFloat16)};
}

// One head after the other, so that the scores fit.
at::Tensor Formula(const Inputs& in) {
  at::Tensor out = at::empty(in.query.sizes(), at::TensorOptions(at::kCUDA).dtype(at::kDouble));
  for (int64_t b = 0; b < out.size(0); ++b) {
    for (int64_t h = 0; h < out.size(2); ++h) {
      const auto head = [&](const at::Tensor& t) {
        return t.select(0, b).select(1, h).to(at::kDouble);
      };
      const at::Tensor scores =
          at::matmul(head(in.query), head(in.key).t()) / std::sqrt(double{kHeadDim});
      out.select(0, b).select(1, h).copy_(at::matmul(at::softmax(scores, -1), head(in.value)));
    }
  }
  return out;
}

double Error(const at::Tensor& out, const at::Tensor& expected) {
  return RelativeError(out.cpu(), expected.cpu());
}

double CudnnError(const Inputs& in, const at::Tensor& expected) {
  const at::Tensor out = std::get<0>(at::_scaled_dot_product_cudnn_attention(
      in.query.transpose(1, 2), in.key.transpose(1, 2), in.value.transpose(1, 2),
      /*attn_bias=*/std::nullopt, /*compute_log_sumexp=*/false));
  return Error(out.transpose(1, 2), expected);
}

// What the kernel wrote. Its output lies in the middle of memory that stays as it was around it.
at::Tensor HopperOutput(const Inputs& in) {
  constexpr int64_t kMargin = 300;
  const int64_t batch = in.query.size(0);
  const int64_t rows = in.query.size(1);
  const at::Tensor memory = at::full({batch * rows + 2 * kMargin, in.query.size(2), kHeadDim},
                                     std::numeric_limits<double>::quiet_NaN(),
                                     at::TensorOptions(at::kCUDA).dtype(at::kBFloat16));
  at::Tensor out = memory.narrow(0, kMargin, batch * rows).view(in.query.sizes());
  EXPECT_TRUE(GetCudaOps().attention(in.query, in.key, in.value, out));
  for (const int64_t start : {int64_t{0}, kMargin + batch * rows}) {
    EXPECT_TRUE(memory.narrow(0, start, kMargin).isnan().all().item().toBool());
  }
  return out;
}

struct Shape {
  int64_t batch, queries, keys, heads;
};

std::ostream& operator<<(std::ostream& out, const Shape& shape) {
  return out << shape.batch << " x " << shape.queries << " queries, " << shape.keys << " keys, "
             << shape.heads << " heads";
}

// Tiles have 256 queries and 176 keys: one of each, whole ones, one more and one less, more tiles
// than a GPU has clusters, and few enough that most blocks have none.
constexpr Shape kShapes[] = {
    {1, 1, 1, 1},      {1, 1, 512, 2},   {1, 257, 1, 2},     {2, 77, 77, 3},   {2, 256, 176, 2},
    {1, 255, 177, 5},  {1, 353, 352, 2}, {2, 130, 300, 4},   {3, 129, 175, 7}, {1, 64, 177, 40},
    {2, 1560, 512, 5}, {1, 2000, 1, 40}, {2, 1111, 1111, 8}, {1, 75, 5000, 3}, {1, 2048, 2048, 9},
};

class HopperAttention : public testing::Test {
 protected:
  void SetUp() override {
    if (!IsHopper()) GTEST_SKIP() << "no GPU of compute capability 9.0";
  }
};

TEST_F(HopperAttention, EqualsTheFormulaAsWellAsCudnn) {
  for (const Shape& shape : kShapes) {
    const auto& [batch, queries, keys, heads] = shape;
    const Inputs in = Rounded(Normal({batch, queries, heads, kHeadDim}, 1),
                              Normal({batch, keys, heads, kHeadDim}, 2),
                              Normal({batch, keys, heads, kHeadDim}, 3));
    const at::Tensor expected = Formula(in);
    const double error = Error(HopperOutput(in), expected);
    EXPECT_LE(error, kTolerance) << shape;
    if (queries > 1 && keys > 1) {
      EXPECT_LE(error, kBesideCudnn * CudnnError(in, expected)) << shape;
    }
  }
}

TEST_F(HopperAttention, ReadsThePackedProduct) {
  const at::Tensor packed = Normal({2, 1111, 3, 6, kHeadDim}, 4).to(at::kBFloat16);
  const Inputs in = {packed.select(2, 0), packed.select(2, 1), packed.select(2, 2)};
  const at::Tensor out = HopperOutput(in);
  EXPECT_LE(Error(out, Formula(in)), kTolerance);
  EXPECT_TRUE(at::equal(
      out, HopperOutput({in.query.contiguous(), in.key.contiguous(), in.value.contiguous()})));
}

// Inputs on which a running softmax goes wrong first.
TEST_F(HopperAttention, StandsHardInputs) {
  constexpr int64_t kTokens = 3003;
  const at::Tensor query = Normal({1, kTokens, 3, kHeadDim}, 5);
  const at::Tensor key = Normal({1, kTokens, 3, kHeadDim}, 6);
  const at::Tensor value = Normal({1, kTokens, 3, kHeadDim}, 7);
  const at::Tensor ramp =
      at::linspace(0.1, 6, kTokens, at::kFloat).to(at::kCUDA).view({1, -1, 1, 1});
  const auto with_outliers = [](const at::Tensor& t) {
    at::Tensor result = t.clone();
    result.select(3, 5).mul_(8);
    result.select(3, 77).mul_(6);
    return result;
  };
  const struct {
    const char* name;
    Inputs in;
  } cases[] = {
      {"wide logits", Rounded(query * 3, key * 3, value)},
      {"outlier channels", Rounded(with_outliers(query), with_outliers(key), value)},
      {"scores that grow with the key", Rounded(query, key * ramp, value)},
      {"scores that shrink with the key", Rounded(query, key * ramp.flip(1), value)},
      {"positive scores alone", Rounded(query * 0.1 + 1, key * 0.1 + 1, value)},
      {"negative scores alone", Rounded(query * 0.1 + 1, key * 0.1 - 1, value)},
      {"rows of either sign", Rounded(query.sign() * 0.5, key * 0.1 + query.sign(), value)},
      {"zeros", Rounded(query * 0, key, value)},
      {"values with a mean", Rounded(query, key, value + 3)},
  };
  for (const auto& [name, in] : cases) {
    const at::Tensor expected = Formula(in);
    EXPECT_LE(Error(HopperOutput(in), expected), kBesideCudnn * CudnnError(in, expected)) << name;
  }
}

TEST_F(HopperAttention, GivesTheSameBitsAtEveryRun) {
  const at::Tensor packed = Normal({1, 2345, 3, 12, kHeadDim}, 8).to(at::kBFloat16);
  const Inputs in = {packed.select(2, 0), packed.select(2, 1), packed.select(2, 2)};
  const at::Tensor first = HopperOutput(in);
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(at::equal(HopperOutput(in), first)) << "run " << i;
}

// Guidance in one batch must give what two forwards give.
TEST_F(HopperAttention, GivesTheSameBitsInABatch) {
  const at::Tensor packed = Normal({2, 1500, 3, 4, kHeadDim}, 9).to(at::kBFloat16);
  const auto run = [](const at::Tensor& t) {
    return HopperOutput({t.select(2, 0), t.select(2, 1), t.select(2, 2)});
  };
  const at::Tensor both = run(packed);
  for (int64_t b = 0; b < 2; ++b) {
    EXPECT_TRUE(at::equal(run(packed.narrow(0, b, 1)), both.narrow(0, b, 1)));
  }
}

TEST_F(HopperAttention, IsTheOneThatLongSequencesGet) {
  const at::Tensor packed = Normal({1, 1024, 3, 4, kHeadDim}, 10).to(at::kBFloat16);
  const Inputs in = {packed.select(2, 0), packed.select(2, 1), packed.select(2, 2)};
  EXPECT_TRUE(at::equal(Attention(in.query, in.key, in.value), HopperOutput(in)));
}

TEST_F(HopperAttention, RefusesWhatItCannotRead) {
  const at::Tensor good = Normal({1, 40, 2, kHeadDim}, 11).to(at::kBFloat16);
  at::Tensor out = at::empty(good.sizes(), good.options());
  const auto takes = [&](const at::Tensor& t) { return GetCudaOps().attention(t, t, t, out); };
  EXPECT_TRUE(takes(good));
  EXPECT_FALSE(takes(good.to(at::kHalf)));
  EXPECT_FALSE(takes(good.narrow(3, 0, 64)));
  EXPECT_FALSE(takes(good.narrow(1, 0, 0)));
  // Rows that lie, and rows that start, at no multiple of 16 bytes.
  const at::Tensor odd = Normal({1, 40, 2, kHeadDim + 1}, 12).to(at::kBFloat16);
  EXPECT_FALSE(takes(odd.narrow(3, 0, kHeadDim)));
  EXPECT_FALSE(takes(odd.narrow(3, 1, kHeadDim)));
  EXPECT_FALSE(takes(good.cpu()));
}

// Attention gives it copies.
TEST_F(HopperAttention, GetsCopiesOfWhatItCannotRead) {
  const at::Tensor odd = Normal({1, 1100, 2, kHeadDim + 1}, 13).to(at::kBFloat16);
  const at::Tensor t = odd.narrow(3, 0, kHeadDim);
  EXPECT_LE(Error(Attention(t, t, t), Formula({t, t, t})), kTolerance);
}

// Long calls are computed in parts, which must not change a bit.
at::Tensor InParts(const Inputs& in, int64_t queries) {
  const at::Tensor out = at::empty(in.query.sizes(), in.query.options());
  for (int64_t first = 0; first < out.size(1); first += queries) {
    const int64_t count = std::min(queries, out.size(1) - first);
    at::Tensor part = out.narrow(1, first, count);
    AttentionInto(in.query.narrow(1, first, count), in.key, in.value, part);
  }
  return out;
}

TEST_F(HopperAttention, PartsOfTheQueriesHaveTheBitsOfTheWhole) {
  const at::Tensor packed = Normal({1, 9000, 3, 3, kHeadDim}, 14).to(at::kBFloat16);
  const Inputs in = {packed.select(2, 0), packed.select(2, 1), packed.select(2, 2)};
  const at::Tensor whole = Attention(in.query, in.key, in.value);
  for (const int64_t queries : {256, 3 * 256, 4096}) {
    EXPECT_TRUE(at::equal(InParts(in, queries), whole)) << queries;
  }
}

TEST(CudnnAttention, PartsOfTheQueriesHaveTheBitsOfTheWhole) {
  const at::Tensor packed = Normal({1, 9000, 3, 3, 64}, 15).to(at::kBFloat16);
  const Inputs in = {packed.select(2, 0), packed.select(2, 1), packed.select(2, 2)};
  const at::Tensor whole = Attention(in.query, in.key, in.value);
  for (const int64_t queries : {256, 3 * 256, 4096}) {
    EXPECT_TRUE(at::equal(InParts(in, queries), whole)) << queries;
  }
}

TEST(CudnnAttention, ReadsRowsThatLieAnywhere) {
  for (const int64_t begin : {0, 1, 4}) {
    SCOPED_TRACE(begin);
    const at::Tensor odd = Normal({2, 300, 3, 64 + 5}, 16).to(at::kBFloat16);
    const at::Tensor t = odd.narrow(3, begin, 64);
    ASSERT_EQ(ChooseAttentionKernel({.device = at::kCUDA,
                                     .dtype = at::kBFloat16,
                                     .queries = 300,
                                     .keys = 300,
                                     .head_dim = 64,
                                     .compute_capability = GetCudaOps().compute_capability(0)}),
              AttentionKernel::kCudnn);
    // LibTorch's own, on copies in fp32.
    const at::Tensor wide = t.to(at::kFloat).contiguous().transpose(1, 2);
    const at::Tensor expected =
        at::scaled_dot_product_attention(wide, wide, wide).transpose(1, 2).to(at::kDouble);
    EXPECT_LE(Error(Attention(t, t, t), expected), kTolerance);
  }
}

}  // namespace
}  // namespace wan
