// The kernels of 8 bits against their ATen references, and what they cost in precision.
#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <gtest/gtest.h>

#include <limits>

#include "engine/ops/attention.h"
#include "engine/ops/cuda_ops.h"
#include "engine/ops/gate_residual_norm.h"
#include "engine/ops/layer_norm_modulate.h"
#include "engine/ops/rounded_attention.h"
#include "engine/ops/rounded_linear.h"
#include "engine/ops/rounding.h"
#include "tests/engine/golden_tensors.h"
#include "tests/engine/random_tensor.h"

namespace wan {
namespace {

at::Tensor Normal(at::IntArrayRef shape, uint64_t seed) {
  return RandomTensor(shape, seed, at::kBFloat16).to(at::kCUDA);
}

RoundedRows OnCpu(const RoundedRows& rows) {
  return {rows.codes.cpu().contiguous(), rows.scales.cpu()};
}

// Codes are compared as bytes, because at::equal takes no e4m3.
void ExpectSame(const RoundedRows& a, const RoundedRows& b) {
  EXPECT_TRUE(at::equal(a.scales.cpu(), b.scales.cpu()));
  EXPECT_TRUE(at::equal(a.codes.cpu().contiguous().view(at::kByte),
                        b.codes.cpu().contiguous().view(at::kByte)));
}

class RoundingGpuTest : public testing::Test {
 protected:
  void SetUp() override {
    if (GetCudaOps().compute_capability(0) < kFirstE4m3Capability) {
      GTEST_SKIP() << "no GPU with products of e4m3";
    }
  }
};

TEST_F(RoundingGpuTest, RowsGetTheReferencesBits) {
  for (const int64_t columns : {8, 200, 3072, 5120, 8192, 13824, 14336}) {
    const at::Tensor x = Normal({33, columns}, 1);
    x[3].zero_();
    const at::Tensor on_cpu = x.cpu();
    const RoundedRows expected = MakeRounded(33, columns, at::kCPU);
    RoundRowsReference(on_cpu, expected);
    const RoundedRows apart = MakeRounded(33, columns, x.device());
    ASSERT_TRUE(GetCudaOps().round_rows(x, apart));
    ExpectSame(apart, expected);
    const RoundedRows inside = RoundedIn(x, columns);
    ASSERT_TRUE(GetCudaOps().round_rows(x, inside));
    ExpectSame(inside, expected);
  }
}

TEST_F(RoundingGpuTest, NormsAreThoseOfTheReference) {
  constexpr double kEps = 1e-6;
  for (const int64_t dim : {64, 200, 3072, 5120}) {
    const auto table = [&](uint64_t seed) { return RandomTensor({1, dim}, seed).to(at::kCUDA); };
    at::Tensor x = RandomTensor({37, dim}, 2).to(at::kCUDA);
    at::Tensor reference_x = x.clone();
    at::Tensor y = Normal({37, dim}, 3);
    at::Tensor norm = at::empty_like(x);
    GateResidualNormReference(y, table(4), reference_x, table(5), table(6), {}, kEps, norm);
    const RoundedRows inside = RoundedIn(y, dim);
    ASSERT_TRUE(GetCudaOps().rounded_norm(y, table(4), x, table(5), table(6), {}, kEps, inside));
    EXPECT_LE(RelativeError(x.cpu(), reference_x.cpu()), 1e-6);
    const RoundedRows expected = MakeRounded(37, dim, at::kCPU);
    RoundRowsReference(norm.cpu(), expected);
    // Sums differ in their last bits, which moves a few values to the next code.
    EXPECT_LE(RelativeError(OnCpu(inside).ToFloat(), expected.ToFloat()), 2e-3);

    LayerNormModulateReference(x, table(5), table(6), {}, kEps, norm);
    RoundRowsReference(norm.cpu(), expected);
    const RoundedRows apart = MakeRounded(37, dim, x.device());
    LayerNormModulate(x, table(5), table(6), {}, kEps, apart);
    EXPECT_LE(RelativeError(OnCpu(apart).ToFloat(), expected.ToFloat()), 2e-3);
  }
}

// Products of the models and odd numbers of rows; the last two are beyond what the kernel takes.
struct Product {
  int64_t rows, in, out;
};
constexpr Product kProducts[] = {{1, 3072, 3072},    {191, 5120, 5120}, {193, 5120, 13824},
                                 {400, 14336, 3072}, {3500, 768, 256},  {70, 512, 256},
                                 {64, 3072, 320}};

TEST_F(RoundingGpuTest, ProductsAreThoseOfTheReference) {
  for (const auto& [rows, in, out] : kProducts) {
    const at::Tensor x = Normal({rows, in}, 7);
    const at::Tensor weight = Normal({out, in}, 8);
    const at::Tensor bias = Normal({out}, 9);
    const RoundedRows inside = RoundedIn(x, in);
    RoundRows(x, inside);
    const RoundedRows rounded_weight = MakeRounded(out, in, weight.device());
    RoundRows(weight, rounded_weight);
    for (const Activation activation : {Activation::kNone, Activation::kGeluTanh}) {
      // Memory around the result shows writes beyond it.
      const at::Tensor memory =
          at::full({rows + 2, out}, std::numeric_limits<double>::quiet_NaN(), x.options());
      at::Tensor actual = memory.narrow(0, 1, rows);
      RoundedLinear(inside, rounded_weight, bias, activation, actual);
      at::Tensor expected = at::empty({rows, out});
      RoundedLinearReference(OnCpu(inside), OnCpu(rounded_weight), bias.cpu(), activation,
                             expected);
      // 1.7e-3 is the rounding of the result to bf16.
      EXPECT_LE(RelativeError(actual.cpu(), expected), 4e-3) << rows << " " << in << " " << out;
      EXPECT_TRUE(memory[0].isnan().all().item().toBool());
      EXPECT_TRUE(memory[rows + 1].isnan().all().item().toBool());
    }
  }
}

// Tensor cores keep 14 bits of a sum, which would lose a fifth of this one.
TEST_F(RoundingGpuTest, SumsOfOneSignKeepTheirSize) {
  const at::Tensor x = Normal({256, 13824}, 10).abs();
  const at::Tensor weight = Normal({256, 13824}, 11).abs();
  const at::Tensor bias = at::full({256}, 0.0, x.options());
  const RoundedRows inside = RoundedIn(x, 13824);
  RoundRows(x, inside);
  const RoundedRows rounded_weight = MakeRounded(256, 13824, weight.device());
  RoundRows(weight, rounded_weight);
  at::Tensor actual = at::empty({256, 256}, x.options());
  RoundedLinear(inside, rounded_weight, bias, Activation::kNone, actual);
  at::Tensor expected = at::empty({256, 256});
  RoundedLinearReference(OnCpu(inside), OnCpu(rounded_weight), bias.cpu(), Activation::kNone,
                         expected);
  EXPECT_LE(RelativeError(actual.cpu(), expected), 5e-3);
}

struct Inputs {
  at::Tensor query, key, value;
};

Inputs Packed(int64_t batch, int64_t tokens, int64_t heads) {
  const at::Tensor packed = Normal({batch, tokens, 3, heads, 128}, 12);
  return {packed.select(2, 0), packed.select(2, 1), packed.select(2, 2)};
}

class RoundedAttentionGpuTest : public testing::Test {
 protected:
  void SetUp() override {
    if (GetCudaOps().compute_capability(0) != 90)
      GTEST_SKIP() << "no GPU of compute capability 9.0";
  }
};

TEST_F(RoundedAttentionGpuTest, HeadsAreRoundedAsByTheReference) {
  for (const int64_t tokens : {1, 127, 128, 1500}) {
    const Inputs in = Packed(2, tokens, 3);
    at::Tensor query = in.query.cpu();
    at::Tensor key = in.key.cpu();
    const RoundedHeads expected_query = RoundQueriesReference(query);
    const RoundedHeads expected_key = RoundKeysReference(key);
    at::Tensor own_query = in.query;
    at::Tensor own_key = in.key;
    const RoundedHeads rounded_query = RoundQueries(own_query);
    const RoundedHeads rounded_key = RoundKeys(own_key);
    for (const auto& [actual, expected] :
         {std::pair(rounded_query, expected_query), std::pair(rounded_key, expected_key)}) {
      EXPECT_LE(RelativeError(actual.scales.cpu(), expected.scales), 1e-5) << tokens;
      EXPECT_LE(RelativeError(actual.codes.cpu().to(at::kFloat), expected.codes.to(at::kFloat)),
                2e-3)
          << tokens;
    }
    const RoundedValues expected = RoundValuesReference(in.value.cpu());
    const RoundedValues rounded = RoundValues(in.value);
    EXPECT_LE(RelativeError(rounded.means.cpu(), expected.means), 1e-5) << tokens;
    EXPECT_LE(RelativeError(rounded.scales.cpu(), expected.scales), 1e-5) << tokens;
    EXPECT_LE(RelativeError(rounded.codes.cpu().to(at::kFloat), expected.codes.to(at::kFloat)),
              2e-3)
        << tokens;
  }
}

TEST_F(RoundedAttentionGpuTest, EqualsTheReference) {
  for (const auto& [batch, tokens, heads] :
       {std::tuple(1, 1024, 2), std::tuple(2, 1111, 8), std::tuple(1, 1920, 3),
        std::tuple(1, 2305, 9), std::tuple(3, 1300, 40)}) {
    Inputs in = Packed(batch, tokens, heads);
    // Small scores, for which keys beyond the last must not count either, and large ones.
    in.query.select(2, 0).mul_(1e-3);
    in.query.select(2, 1).mul_(20);
    ASSERT_TRUE(RoundsAttention(in.query, in.key));
    const RoundedHeads query = RoundQueries(in.query);
    const RoundedHeads key = RoundKeys(in.key);
    const RoundedValues value = RoundValues(in.value);
    at::Tensor actual = at::empty(in.value.sizes(), in.value.options());
    ASSERT_TRUE(GetCudaOps().rounded_attention(query, key, value, actual));
    at::Tensor expected = at::empty(in.value.sizes());
    RoundedAttentionReference({query.codes.cpu(), query.scales.cpu()},
                              {key.codes.cpu(), key.scales.cpu()},
                              {value.codes.cpu(), value.scales.cpu(), value.means.cpu()}, expected);
    EXPECT_LE(RelativeError(actual.cpu(), expected), 5e-3) << tokens << " tokens";
    // A part has the same bits as the whole.
    at::Tensor part = at::empty({batch, tokens - 256, heads, 128}, in.value.options());
    ASSERT_TRUE(GetCudaOps().rounded_attention(query.Queries(256, tokens - 256), key, value, part));
    if (batch == 1) EXPECT_TRUE(at::equal(part, actual.narrow(1, 256, tokens - 256)));
  }
}

TEST_F(RoundedAttentionGpuTest, ShowsWhatIsNotFinite) {
  // In the first, a middle and the last tile of keys.
  for (const int64_t token : {3, 700, 1199}) {
    for (const int input : {0, 1, 2}) {
      Inputs in = Packed(1, 1200, 2);
      at::Tensor& spoilt = input == 0 ? in.query : input == 1 ? in.key : in.value;
      spoilt.select(1, token).select(1, 1).select(1, 5).fill_(
          std::numeric_limits<double>::quiet_NaN());
      const RoundedHeads query = RoundQueries(in.query);
      at::Tensor out = at::empty(in.value.sizes(), in.value.options());
      RoundedAttentionInto(query, RoundKeys(in.key), RoundValues(in.value), out);
      const at::Tensor finite = out.isfinite();
      EXPECT_TRUE(finite.select(2, 0).all().item().toBool());
      const at::Tensor spoilt_head = finite.select(2, 1).select(0, 0);  // [tokens, 128]
      if (input == 0) {
        EXPECT_FALSE(spoilt_head.select(0, token).any().item().toBool());
        EXPECT_TRUE(spoilt_head.select(0, 100).all().item().toBool());
      } else if (input == 1) {
        EXPECT_FALSE(spoilt_head.any().item().toBool()) << token;
      } else {
        EXPECT_FALSE(spoilt_head.select(1, 5).any().item().toBool()) << token;
      }
    }
  }
}

TEST_F(RoundedAttentionGpuTest, GivesTheSameBitsAtEveryRun) {
  at::Tensor first;
  for (int i = 0; i < 10; ++i) {
    Inputs in = Packed(1, 2345, 12);
    const RoundedHeads query = RoundQueries(in.query);
    at::Tensor out = at::empty(in.value.sizes(), in.value.options());
    RoundedAttentionInto(query, RoundKeys(in.key), RoundValues(in.value), out);
    if (i == 0) first = out;
    ASSERT_TRUE(at::equal(out, first)) << "run " << i;
  }
}

}  // namespace
}  // namespace wan
