#include "engine/ops/attention.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/softmax.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "tests/engine/golden_tensors.h"
#include "tests/engine/random_tensor.h"

namespace wan {
namespace {

// softmax(q k^T / sqrt(d)) v, one query and head after the other, in float64.
at::Tensor Plain(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value) {
  const at::Tensor q = query.to(at::kDouble).contiguous();
  const at::Tensor k = key.to(at::kDouble).contiguous();
  const at::Tensor v = value.to(at::kDouble).contiguous();
  at::Tensor out = at::empty(q.sizes(), at::kDouble);
  const int64_t heads = q.size(2);
  const int64_t width = q.size(3);
  const auto at_row = [&](const at::Tensor& t, int64_t b, int64_t n, int64_t h) {
    return t.const_data_ptr<double>() + ((b * t.size(1) + n) * heads + h) * width;
  };
  for (int64_t b = 0; b < q.size(0); ++b) {
    for (int64_t n = 0; n < q.size(1); ++n) {
      for (int64_t h = 0; h < heads; ++h) {
        std::vector<double> weights(k.size(1));
        for (int64_t m = 0; m < k.size(1); ++m) {
          double score = 0;
          for (int64_t i = 0; i < width; ++i)
            score += at_row(q, b, n, h)[i] * at_row(k, b, m, h)[i];
          weights[m] = score / std::sqrt(static_cast<double>(width));
        }
        const double largest = *std::max_element(weights.begin(), weights.end());
        double sum = 0;
        for (double& weight : weights) sum += weight = std::exp(weight - largest);
        double* const row = const_cast<double*>(at_row(out, b, n, h));
        for (int64_t i = 0; i < width; ++i) {
          row[i] = 0;
          for (int64_t m = 0; m < k.size(1); ++m)
            row[i] += weights[m] / sum * at_row(v, b, m, h)[i];
        }
      }
    }
  }
  return out;
}

TEST(Attention, EqualsTheFormula) {
  for (const int64_t head_dim : {16, 32, 128}) {
    for (const int64_t keys : {1, 7, 33}) {
      const at::Tensor q = RandomTensor({2, 5, 3, head_dim}, 1);
      const at::Tensor k = RandomTensor({2, keys, 3, head_dim}, 2);
      const at::Tensor v = RandomTensor({2, keys, 3, head_dim}, 3);
      EXPECT_LE(RelativeError(Attention(q, k, v), Plain(q, k, v)), 1e-6)
          << head_dim << " wide, " << keys << " keys";
    }
  }
}

TEST(Attention, TakesTheThirdsOfAPackedProduct) {
  const at::Tensor packed = RandomTensor({1, 9, 3, 2, 32}, 4);
  const at::Tensor q = packed.select(2, 0);
  const at::Tensor k = packed.select(2, 1);
  const at::Tensor v = packed.select(2, 2);
  EXPECT_LE(RelativeError(Attention(q, k, v), Plain(q, k, v)), 1e-6);
}

TEST(Attention, PartsOfTheQueriesHaveTheBitsOfTheWhole) {
  // In the last part are what would be too few queries for one of their own.
  for (const int64_t queries : {3 * kFewestCpuQueries, 3 * kFewestCpuQueries + 596}) {
    const at::Tensor packed = RandomTensor({1, queries, 3, 4, 64}, 1);
    const at::Tensor q = packed.select(2, 0);
    const at::Tensor k = packed.select(2, 1);
    const at::Tensor v = packed.select(2, 2);
    const at::Tensor parts = at::empty(q.sizes(), q.options());
    for (int64_t i = 0; i < 3; ++i) {
      const int64_t first = i * kFewestCpuQueries;
      const int64_t count = i < 2 ? kFewestCpuQueries : queries - first;
      at::Tensor part = parts.narrow(1, first, count);
      AttentionInto(q.narrow(1, first, count), k, v, part);
    }
    EXPECT_TRUE(parts.equal(Attention(q, k, v)));
  }
}

TEST(Attention, KnowsWhatCudnnCannotRead) {
  const at::Tensor wide = RandomTensor({2, 5, 3, 72}, 11, at::kBFloat16);
  EXPECT_TRUE(HasAlignedRows(wide));
  EXPECT_TRUE(HasAlignedRows(wide.narrow(3, 0, 64))) << "rows of 144 bytes";
  EXPECT_TRUE(HasAlignedRows(wide.narrow(3, 8, 64)));
  EXPECT_FALSE(HasAlignedRows(wide.narrow(3, 4, 64))) << "starts at 8 bytes";
  const at::Tensor odd = RandomTensor({2, 5, 3, 65}, 12, at::kBFloat16).narrow(3, 0, 64);
  EXPECT_FALSE(HasAlignedRows(odd)) << "rows of 130 bytes";
  EXPECT_TRUE(HasAlignedRows(odd.narrow(0, 0, 1).narrow(1, 0, 1).narrow(2, 0, 1)))
      << "strides that nobody takes";
}

TEST(Attention, RoundsOnlyInputsAndResultInBf16) {
  const at::Tensor q = RandomTensor({1, 40, 2, 32}, 5, at::kBFloat16);
  const at::Tensor k = RandomTensor({1, 50, 2, 32}, 6, at::kBFloat16);
  const at::Tensor v = RandomTensor({1, 50, 2, 32}, 7, at::kBFloat16);
  const at::Tensor out = Attention(q, k, v);
  EXPECT_EQ(out.scalar_type(), at::kBFloat16);
  constexpr double kTolerance = 3.5e-3;
  EXPECT_LE(RelativeError(out, Plain(q, k, v)), kTolerance);
  // Scores and weights that are rounded to bf16 exceed the tolerance.
  const at::Tensor weights = at::softmax(
      at::matmul(q.transpose(1, 2), k.permute({0, 2, 3, 1})) / std::sqrt(32.0), /*dim=*/-1);
  const at::Tensor rounded = at::matmul(weights, v.transpose(1, 2)).transpose(1, 2);
  EXPECT_EQ(rounded.scalar_type(), at::kBFloat16);
  EXPECT_GT(RelativeError(rounded, Plain(q, k, v)), kTolerance);
}

using Problem = AttentionProblem;

// The kernel for `problem` with one thing changed.
AttentionKernel Chosen(Problem problem, void (*change)(Problem&)) {
  change(problem);
  return ChooseAttentionKernel(problem);
}

// That cuDNN's kernel really runs, and runs right, is seen on a GPU: tests/gpu/ops_gpu_test.cc.
TEST(Attention, ChoosesCudnnWhereItHasAKernel) {
  const AttentionProblem a14b{
      .device = at::kCUDA, .dtype = at::kBFloat16, .queries = 75600, .keys = 512, .head_dim = 128};
  EXPECT_EQ(ChooseAttentionKernel(a14b), AttentionKernel::kCudnn);

  for (const auto change : {
           +[](Problem& p) { p.head_dim = 8; },
           +[](Problem& p) { p.queries = 2; },
           +[](Problem& p) { p.keys = 2; },
       }) {
    EXPECT_EQ(Chosen(a14b, change), AttentionKernel::kCudnn);
  }
  for (const auto change : {
           +[](Problem& p) { p.device = at::kCPU; },
           +[](Problem& p) { p.dtype = at::kFloat; },
           +[](Problem& p) { p.dtype = at::kHalf; },
           +[](Problem& p) { p.head_dim = 136; },
           +[](Problem& p) { p.head_dim = 100; },
           +[](Problem& p) { p.queries = 1; },
           +[](Problem& p) { p.keys = 1; },
       }) {
    EXPECT_EQ(Chosen(a14b, change), AttentionKernel::kLibTorch);
  }
}

TEST(Attention, ChoosesTheHopperKernelForLongSequencesOnHopper) {
  const AttentionProblem a14b{.device = at::kCUDA,
                              .dtype = at::kBFloat16,
                              .queries = 75600,
                              .keys = 75600,
                              .head_dim = 128,
                              .compute_capability = 90};
  EXPECT_EQ(ChooseAttentionKernel(a14b), AttentionKernel::kHopper);

  for (const auto change : {
           +[](Problem& p) { p.queries = 1; },
           +[](Problem& p) { p.keys = 1024; },
       }) {
    EXPECT_EQ(Chosen(a14b, change), AttentionKernel::kHopper);
  }
  for (const auto change : {
           +[](Problem& p) { p.compute_capability = 0; },
           +[](Problem& p) { p.compute_capability = 80; },
           +[](Problem& p) { p.compute_capability = 89; },
           +[](Problem& p) { p.compute_capability = 100; },
           +[](Problem& p) { p.compute_capability = 120; },
           +[](Problem& p) { p.head_dim = 64; },
           +[](Problem& p) { p.keys = 1023; },
       }) {
    EXPECT_EQ(Chosen(a14b, change), AttentionKernel::kCudnn);
  }
  for (const auto change : {
           +[](Problem& p) { p.device = at::kCPU; },
           +[](Problem& p) { p.dtype = at::kHalf; },
           +[](Problem& p) { p.head_dim = 192; },
       }) {
    EXPECT_EQ(Chosen(a14b, change), AttentionKernel::kLibTorch);
  }
}

}  // namespace
}  // namespace wan
