// Every kernel of the transformer against its ATen reference on the CPU, over shapes and dtypes.
#include <ATen/Context.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/_scaled_dot_product_cudnn_attention.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/eye.h>
#include <ATen/ops/full.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/scaled_dot_product_attention.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <limits>
#include <optional>
#include <tuple>

#include "engine/ops/attention.h"
#include "engine/ops/cuda_ops.h"
#include "engine/ops/gate_residual_norm.h"
#include "engine/ops/layer_norm_modulate.h"
#include "engine/ops/linear.h"
#include "engine/ops/rms_norm_rope.h"
#include "engine/ops/rotary_table.h"
#include "tests/engine/golden_tensors.h"
#include "tests/engine/random_tensor.h"

namespace wan {
namespace {

constexpr double kEps = 1e-6;

// The real widths of 5B (3072) and A14B (5120), those of the golden models, the largest, and ones
// that leave threads of the last warp idle.
constexpr int64_t kDims[] = {8, 64, 200, 256, 1000, 3072, 5120, 8192};
constexpr int64_t kRowCounts[] = {1, 7, 300};

// Kernel and reference round the same fp32 result but for its last bits, so they differ by a bf16
// step in few places.
double Tolerance(at::ScalarType dtype) { return dtype == at::kFloat ? 2e-6 : 3e-4; }

at::Tensor Gpu(const at::Tensor& t) { return t.defined() ? t.to(at::kCUDA) : t; }

// Memory that shows what was not written.
at::Tensor Poisoned(at::IntArrayRef shape, at::ScalarType dtype) {
  return at::full(shape, std::numeric_limits<double>::quiet_NaN(),
                  at::TensorOptions(at::kCUDA).dtype(dtype));
}

// dtype of y, dtype of out, rows of the tables.
class NormKernelTest
    : public testing::TestWithParam<std::tuple<at::ScalarType, at::ScalarType, int64_t>> {
 protected:
  at::ScalarType y_dtype() const { return std::get<0>(GetParam()); }
  at::ScalarType out_dtype() const { return std::get<1>(GetParam()); }
  int64_t table_rows() const { return std::get<2>(GetParam()); }

  at::Tensor Index(int64_t rows) const {
    return table_rows() == 1 ? at::Tensor() : RandomIndex(rows, table_rows(), 11);
  }
  // A table as the model has it: one of six vectors of each row.
  at::Tensor Table(int64_t dim, uint64_t seed, double mean) const {
    return RandomTensor({table_rows(), 6, dim}, seed, at::kFloat, mean).select(1, 2);
  }
};

TEST_P(NormKernelTest, LayerNormModulateEqualsTheReference) {
  for (const int64_t dim : kDims) {
    for (const int64_t rows : kRowCounts) {
      const at::Tensor x = RandomTensor({rows, dim}, dim + rows, at::kFloat, 3.0, 2.0);
      const at::Tensor scale = Table(dim, 2, 1);
      const at::Tensor shift = Table(dim, 3, 0);
      const at::Tensor index = Index(rows);
      at::Tensor expected = at::empty({rows, dim}, out_dtype());
      LayerNormModulateReference(x, scale, shift, index, kEps, expected);
      at::Tensor out = Poisoned({rows, dim}, out_dtype());
      ASSERT_TRUE(
          GetCudaOps().layer_norm_modulate(Gpu(x), Gpu(scale), Gpu(shift), Gpu(index), kEps, out));
      EXPECT_LE(RelativeError(out, expected), Tolerance(out_dtype())) << rows << " x " << dim;
    }
  }
}

TEST_P(NormKernelTest, GateResidualNormEqualsTheReference) {
  for (const int64_t dim : kDims) {
    for (const int64_t rows : kRowCounts) {
      for (const bool gated : {true, false}) {
        const at::Tensor y = RandomTensor({rows, dim}, dim, y_dtype());
        const at::Tensor gate = gated ? Table(dim, 5, 0.5) : at::Tensor();
        // One vector for all rows beside a gate that differs, as before the cross-attention.
        const at::Tensor scale =
            gated ? RandomTensor({1, dim}, 2, at::kFloat, 1) : Table(dim, 2, 1);
        const at::Tensor shift = Table(dim, 3, 0);
        const at::Tensor index = Index(rows);
        at::Tensor expected_x = RandomTensor({rows, dim}, 7, at::kFloat, 3.0, 2.0);
        at::Tensor x = Gpu(expected_x);
        at::Tensor expected = at::empty({rows, dim}, out_dtype());
        GateResidualNormReference(y, gate, expected_x, scale, shift, index, kEps, expected);

        at::Tensor out = Poisoned({rows, dim}, out_dtype());
        ASSERT_TRUE(GetCudaOps().gate_residual_norm(Gpu(y), Gpu(gate), x, Gpu(scale), Gpu(shift),
                                                    Gpu(index), kEps, out));
        EXPECT_LE(RelativeError(x, expected_x), 1e-6) << rows << " x " << dim;
        EXPECT_LE(RelativeError(out, expected), Tolerance(out_dtype())) << rows << " x " << dim;
      }
    }
  }
}

TEST_P(NormKernelTest, GateResidualNormMayWriteOverItsInput) {
  if (y_dtype() != out_dtype()) GTEST_SKIP() << "only where both have one dtype";
  const at::Tensor y = Gpu(RandomTensor({300, 3072}, 1, y_dtype()));
  const at::Tensor gate = Gpu(Table(3072, 5, 0.5));
  const at::Tensor scale = Gpu(Table(3072, 2, 1));
  const at::Tensor shift = Gpu(Table(3072, 3, 0));
  const at::Tensor index = Gpu(Index(300));
  at::Tensor x = Gpu(RandomTensor({300, 3072}, 7));
  at::Tensor same_x = x.clone();
  at::Tensor same = y.clone();
  at::Tensor out = Poisoned({300, 3072}, out_dtype());
  ASSERT_TRUE(GetCudaOps().gate_residual_norm(y, gate, x, scale, shift, index, kEps, out));
  ASSERT_TRUE(GetCudaOps().gate_residual_norm(same, gate, same_x, scale, shift, index, kEps, same));
  EXPECT_TRUE(at::equal(same, out));
  EXPECT_TRUE(at::equal(same_x, x));
}

INSTANTIATE_TEST_SUITE_P(All, NormKernelTest,
                         testing::Combine(testing::Values(at::kFloat, at::kBFloat16),
                                          testing::Values(at::kFloat, at::kBFloat16),
                                          testing::Values(1, 2, 5)));

TEST(NormKernel, StandsALargeMean) {
  const at::Tensor x = RandomTensor({20, 3072}, 1, at::kFloat, 1000.0, 1.0);
  const at::Tensor one = at::full({1, 3072}, 1.0, at::kFloat);
  const at::Tensor zero = at::zeros({1, 3072}, at::kFloat);
  at::Tensor expected = at::empty({20, 3072}, at::kDouble);
  const at::Tensor centered = x.to(at::kDouble) - x.to(at::kDouble).mean(1, true);
  expected.copy_(centered / (centered.square().mean(1, true) + kEps).sqrt());
  at::Tensor out = Poisoned({20, 3072}, at::kFloat);
  ASSERT_TRUE(GetCudaOps().layer_norm_modulate(Gpu(x), Gpu(one), Gpu(zero), {}, kEps, out));
  EXPECT_LE(RelativeError(out, expected), 5e-4);
}

// dtype, parts, whether positions are rotated.
class RmsNormRopeKernelTest
    : public testing::TestWithParam<std::tuple<at::ScalarType, int64_t, bool>> {};

TEST_P(RmsNormRopeKernelTest, EqualsTheReference) {
  const auto [dtype, parts, rotates] = GetParam();
  for (const int64_t head_dim : {8, 32, 128}) {
    for (const int64_t heads : {1, 2, 24, 40}) {
      const int64_t dim = heads * head_dim;
      const at::Tensor rotary = rotates ? RotaryTable({3, 5, 7}, head_dim, at::kCPU) : at::Tensor();
      // Two batch entries, and a part beside the others that stays as it is.
      at::Tensor expected = RandomTensor({2 * 105, (parts + 1) * dim}, dim, dtype, 0.5, 3.0);
      const at::Tensor product = Gpu(expected);
      const at::Tensor weight = RandomTensor({parts, dim}, 2, at::kFloat, 1, 0.3);
      at::Tensor expected_parts = expected.narrow(1, 0, parts * dim);
      RmsNormRopeReference(expected_parts, weight, kEps, rotary);
      at::Tensor x = product.narrow(1, 0, parts * dim);
      ASSERT_TRUE(GetCudaOps().rms_norm_rope(x, Gpu(weight), kEps, Gpu(rotary)));
      EXPECT_LE(RelativeError(product, expected), Tolerance(dtype))
          << heads << " heads of " << head_dim;
      EXPECT_TRUE(at::equal(product.narrow(1, parts * dim, dim).cpu(),
                            expected.narrow(1, parts * dim, dim)));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, RmsNormRopeKernelTest,
                         testing::Combine(testing::Values(at::kFloat, at::kBFloat16),
                                          testing::Values(1, 2), testing::Bool()));

// What a kernel does not support goes through ATen, with the same result.
TEST(Fallback, TakesRowsThatAreNoMultipleOf8) {
  constexpr int64_t kDim = 60;
  const at::Tensor one = at::full({1, kDim}, 1.0, at::kFloat);
  const at::Tensor zero = at::zeros({1, kDim}, at::kFloat);
  const at::Tensor x = RandomTensor({5, kDim}, 1);
  at::Tensor expected = at::empty({5, kDim}, at::kFloat);
  LayerNormModulateReference(x, one, zero, {}, kEps, expected);
  at::Tensor out = Poisoned({5, kDim}, at::kFloat);
  EXPECT_FALSE(GetCudaOps().layer_norm_modulate(Gpu(x), Gpu(one), Gpu(zero), {}, kEps, out));
  LayerNormModulate(Gpu(x), Gpu(one), Gpu(zero), {}, kEps, out);
  EXPECT_LE(RelativeError(out, expected), 2e-6);

  at::Tensor rotated = RandomTensor({6, kDim}, 2);
  at::Tensor on_gpu = Gpu(rotated);
  const at::Tensor rotary = RotaryTable({1, 2, 3}, 20, at::kCPU);
  RmsNormRopeReference(rotated, one, kEps, rotary);
  EXPECT_FALSE(GetCudaOps().rms_norm_rope(on_gpu, Gpu(one), kEps, Gpu(rotary)));
  RmsNormRope(on_gpu, Gpu(one), kEps, Gpu(rotary));
  EXPECT_LE(RelativeError(on_gpu, rotated), 2e-6);
}

TEST(Fallback, TakesMemoryThatIsNotAlignedForVectors) {
  const at::Tensor one = Gpu(at::full({1, 64}, 1.0, at::kFloat));
  const at::Tensor x = Gpu(RandomTensor({5, 65}, 1));
  at::Tensor shifted = x.narrow(1, 1, 64);
  const at::Tensor zero = Gpu(at::zeros({1, 64}, at::kFloat));
  at::Tensor out = Poisoned({5, 64}, at::kFloat);
  EXPECT_FALSE(GetCudaOps().layer_norm_modulate(shifted, one, zero, {}, kEps, out));
  LayerNormModulate(shifted, one, zero, {}, kEps, out);
  at::Tensor expected = at::empty({5, 64}, at::kFloat);
  LayerNormModulateReference(shifted.cpu(), one.cpu(), zero.cpu(), {}, kEps, expected);
  EXPECT_LE(RelativeError(out, expected), 2e-6);
}

// Attention against ATen on the CPU in fp32: self-attention out of a packed product, and few keys.
TEST(Attention, EqualsTheCpu) {
  for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16}) {
    // Heads that cuDNN takes, and two that it does not take.
    for (const int64_t head_dim : {32, 128, 36, 192}) {
      for (const int64_t tokens : {1, 4, 27, 1000}) {
        const at::Tensor packed = RandomTensor({2, tokens, 3, 4, head_dim}, tokens, dtype);
        const at::Tensor text = RandomTensor({2, 512, 2, 4, head_dim}, 3, dtype);
        const at::Tensor wide = packed.to(at::kFloat);
        const at::Tensor wide_text = text.to(at::kFloat);
        const double tolerance = dtype == at::kFloat ? 2e-5 : 6e-3;
        const at::Tensor on_gpu = Gpu(packed);
        const at::Tensor text_on_gpu = Gpu(text);
        EXPECT_LE(
            RelativeError(Attention(on_gpu.select(2, 0), on_gpu.select(2, 1), on_gpu.select(2, 2)),
                          Attention(wide.select(2, 0), wide.select(2, 1), wide.select(2, 2))),
            tolerance)
            << tokens << " tokens, heads of " << head_dim;
        EXPECT_LE(
            RelativeError(
                Attention(on_gpu.select(2, 0), text_on_gpu.select(2, 0), text_on_gpu.select(2, 1)),
                Attention(wide.select(2, 0), wide_text.select(2, 0), wide_text.select(2, 1))),
            tolerance)
            << tokens << " tokens to 512, heads of " << head_dim;
      }
    }
  }
}

// cuDNN's kernel gives the same bits whoever calls it, and other bits than FlashAttention, which
// LibTorch takes where cuDNN is switched off; so the bits tell which of them ran.
TEST(Attention, RunsTheKernelThatWasChosen) {
  const bool before = at::globalContext().userEnabledCuDNNSDP();
  at::globalContext().setSDPUseCuDNN(false);
  const auto bits_of = [](const at::Tensor& t) { return t.contiguous().cpu(); };
  for (const int64_t head_dim : {32, 128, 192}) {
    const at::Tensor packed = Gpu(RandomTensor({1, 1000, 3, 4, head_dim}, 8, at::kBFloat16));
    const at::Tensor query = packed.select(2, 0);
    const at::Tensor key = packed.select(2, 1);
    const at::Tensor value = packed.select(2, 2);
    const at::Tensor q = query.transpose(1, 2);
    const at::Tensor k = key.transpose(1, 2);
    const at::Tensor v = value.transpose(1, 2);
    const at::Tensor out = bits_of(Attention(query, key, value));
    const at::Tensor flash = bits_of(at::scaled_dot_product_attention(q, k, v).transpose(1, 2));
    if (head_dim > 128) {
      EXPECT_TRUE(at::equal(out, flash)) << head_dim;
      continue;
    }
    const at::Tensor cudnn = bits_of(
        std::get<0>(at::_scaled_dot_product_cudnn_attention(q, k, v, /*attn_bias=*/std::nullopt,
                                                            /*compute_log_sumexp=*/false))
            .transpose(1, 2));
    EXPECT_TRUE(at::equal(out, cudnn)) << head_dim;
    EXPECT_FALSE(at::equal(out, flash)) << head_dim;
  }
  at::globalContext().setSDPUseCuDNN(before);
}

// The epilogue's GELU is the one with tanh, and applied to the sum in fp32: around -2.2 the
// variants differ by 1.5 %, far beyond bf16's rounding.
TEST(LinearGelu, IsTheTanhApproximation) {
  for (const int64_t width : {64, 1024}) {
    const at::Tensor x = RandomTensor({300, width}, 4, at::kBFloat16, -2.2, 0.3);
    const at::Tensor weight = at::eye(width, at::kBFloat16);
    const at::Tensor bias = at::zeros({width}, at::kBFloat16);
    at::Tensor out = Poisoned({300, width}, at::kBFloat16);
    LinearGelu(Gpu(x), Gpu(weight), Gpu(bias), out);
    EXPECT_LE(RelativeError(out, at::gelu(x.to(at::kDouble), "tanh")), 3e-3);
    EXPECT_GT(RelativeError(out, at::gelu(x.to(at::kDouble), "none")), 5e-3);
  }
}

TEST(Linear, EqualsTheCpu) {
  for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16}) {
    const at::Tensor x = RandomTensor({300, 3072}, 1, dtype);
    const at::Tensor weight = RandomTensor({160, 3072}, 2, dtype, 0, 0.02);
    const at::Tensor bias = RandomTensor({160}, 3, dtype);
    at::Tensor expected = at::empty({300, 160}, at::kDouble);
    Linear(x.to(at::kDouble), weight.to(at::kDouble), bias.to(at::kDouble), expected);
    at::Tensor out = Poisoned({300, 160}, dtype);
    Linear(Gpu(x), Gpu(weight), Gpu(bias), out);
    EXPECT_LE(RelativeError(out, expected), dtype == at::kFloat ? 2e-6 : 3e-3);
  }
}

TEST(RotaryTable, IsTheSameOnTheDevice) {
  EXPECT_TRUE(at::equal(RotaryTable({4, 5, 6}, 128, at::kCUDA).cpu(),
                        RotaryTable({4, 5, 6}, 128, at::kCPU)));
}

}  // namespace
}  // namespace wan
