// The transformer's description holds for the code: the loader's groups, and what is allocated.
#include "engine/costs/wan/transformer_cost.h"

#include <ATen/ops/full.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "engine/checkpoint/synthetic_models.h"
#include "engine/models/wan/transformer.h"
#include "tests/engine/costs/wan/cost_support.h"
#include "tests/engine/random_tensor.h"
#include "tests/support/peak_allocator.h"

namespace wan {
namespace {

// On a GPU these are kernels of ours, which allocate nothing.
const std::set<std::string> kKernels = {"wan::layer_norm_modulate", "wan::gate_residual_norm",
                                        "wan::rms_norm_rope"};

struct Case {
  std::string name;
  TransformerConfig config;
  int64_t frames = 2;
  int64_t side = 16;
  bool attention_is_largest = false;
};

// Kilobytes that the walk leaves to the plan's margin of 1 %: the head's modulation at two
// timesteps.
uint64_t HeadTableBytes(const TransformerConfig& config) {
  return static_cast<uint64_t>(2 * 2 * config.dim * 4);
}

// LibTorch's attention on a CPU keeps the scores of at most 256 queries and 512 keys for each
// thread, in fp32 and in its dtype, and a sum for every query. The GPU's keeps its scores on chip.
uint64_t CpuAttentionBytes(const TransformerConfig& config, int64_t tokens, int64_t batch) {
  constexpr int64_t kQueries = 256;
  constexpr int64_t kKeys = 512;
  const int64_t head_dim = config.dim / config.num_heads;
  return static_cast<uint64_t>(kQueries * (kKeys * (4 + 2) + (2 + head_dim) * 4) +
                               batch * tokens * config.num_heads * 4);
}

TransformerConfig Tiny() { return FindSyntheticModel("ti2v-tiny").value().transformer; }

// In each another part of a forward is the largest.
std::vector<Case> Cases() {
  std::vector<Case> cases;
  cases.push_back({"tiny", Tiny()});
  cases.push_back({"wide_feed_forward", Tiny()});
  cases.back().config.ffn_dim = 2048;
  cases.push_back({"many_channels", Tiny()});
  cases.back().config.in_channels = 512;
  cases.push_back({"large_result", Tiny()});
  cases.back().config.out_channels = 512;
  cases.push_back({"large_heads", Tiny()});
  cases.back().config.num_heads = 1;
  cases.push_back({"many_blocks", Tiny()});
  cases.back().config.num_layers = 12;
  cases.push_back({"long_text", Tiny()});
  cases.back().config.text_len = 2000;
  cases.push_back({"narrow_ends", Tiny(), 4, 32, /*attention_is_largest=*/true});
  cases.back().config.in_channels = 1;
  cases.back().config.out_channels = 1;
  cases.push_back({"wide_narrow_ends", Tiny(), 4, 16, /*attention_is_largest=*/true});
  cases.back().config.in_channels = 1;
  cases.back().config.out_channels = 1;
  cases.back().config.dim = 512;
  cases.back().config.num_heads = 4;
  return cases;
}

class TransformerCostTest : public testing::TestWithParam<Case> {
 protected:
  static std::unique_ptr<VideoTransformer> Load(const TransformerConfig& config,
                                                at::ScalarType dtype,
                                                std::shared_ptr<ComponentWeights> weights,
                                                bool eight_bits = false,
                                                std::vector<int> exact_blocks = {}) {
    const SyntheticWeights source(ExpectedTensors(config));
    return LoadWanTransformer(source, config,
                              {.dtype = dtype,
                               .weights = std::move(weights),
                               .eight_bit_weights = eight_bits,
                               .exact_blocks = std::move(exact_blocks)})
        .value();
  }
};

TEST_P(TransformerCostTest, LoaderEntersTheDescribedGroups) {
  const TransformerConfig& config = GetParam().config;
  for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16}) {
    for (const bool eight_bits : {false, true}) {
      for (const std::vector<int>& exact_blocks : {std::vector<int>{}, std::vector<int>{0}}) {
        const auto weights = EmptyWeights();
        const auto transformer = Load(config, dtype, weights, eight_bits, exact_blocks);
        ExpectLoadedAsDescribed(TransformerWeightGroups(config, eight_bits, exact_blocks), *weights,
                                dtype);
      }
    }
  }
}

TEST_P(TransformerCostTest, WalksHoldWhatIsAllocated) {
  const OneThread one_thread;
  const WithoutOneDnn own_products;
  const auto& [name, config, frames, side, attention_is_largest] = GetParam();
  SCOPED_TRACE(name);
  const int64_t tokens = frames * side * side / 4;
  for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16}) {
    SCOPED_TRACE(at::toString(dtype));
    const auto bytes = static_cast<int64_t>(at::elementSize(dtype));
    const auto transformer = Load(config, dtype, nullptr);
    for (const int64_t batch : {1, 2}) {
      const std::vector<at::Tensor> contexts(batch, RandomTensor({7, config.text_dim}, 1, dtype));
      const at::Tensor latents = RandomTensor({batch, config.in_channels, frames, side, side}, 2);
      // Two timesteps, as a clean first frame has them.
      at::Tensor timestep = at::full({batch, tokens}, 500.0);
      timestep.select(1, 0).zero_();

      PeakAllocator memory(kKernels);
      const auto text = transformer->PrepareText(contexts).value();
      const uint64_t prepared = memory.peak();
      EXPECT_EQ(memory.held(), TextConditioningBytes(config, batch, bytes));
      const uint64_t text_walk =
          TextConditioningBytes(config, batch, bytes) + TextPreparationBytes(config, batch, bytes);
      EXPECT_EQ(prepared, text_walk);

      memory.Begin();
      const at::Tensor flow = transformer->Forward(latents, timestep, *text).value();
      const uint64_t forward = ForwardBytes(config, tokens, batch, bytes);
      EXPECT_GE(memory.peak(), forward);
      const uint64_t besides =
          HeadTableBytes(config) +
          (attention_is_largest ? CpuAttentionBytes(config, tokens, batch) : 0);
      EXPECT_LE(memory.peak(), forward + besides);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, TransformerCostTest, testing::ValuesIn(Cases()),
                         [](const auto& info) { return info.param.name; });

TEST(BlockOperatorsTest, AddUpToTheBlock) {
  const TransformerConfig config{.dim = 3072, .ffn_dim = 14336, .text_len = 512};
  const BlockFlops block = TransformerBlockFlops(config, 27280, 2);
  double flops = 0;
  for (const OperatorWork& work : TransformerBlockOperators(config, 27280, 2, 2)) {
    flops += work.flops;
    EXPECT_GT(work.bytes, 2 * 27280 * 3072) << work.name;
  }
  EXPECT_NEAR(flops / (block.self_attention + block.rest), 1, 1e-12);
}

// The profile of a block numbers its operators by BlockStep.
TEST(BlockOperatorsTest, StandWhereTheirStepIs) {
  const TransformerConfig config{.dim = 64, .ffn_dim = 256, .text_len = 8};
  const std::vector<BlockOperator> operators = BlockOperators(config, 100, 1, 2);
  const auto at = [&](BlockStep step) { return operators.at(static_cast<size_t>(step)); };
  EXPECT_EQ(at(BlockStep::kQueriesKeysValues).name, "queries_keys_values");
  EXPECT_EQ(at(BlockStep::kSelfAttention).name, "self_attention");
  EXPECT_EQ(at(BlockStep::kTextAttention).name, "text_attention");
  EXPECT_EQ(at(BlockStep::kFeedForwardOut).flops, 2.0 * 100 * 256 * 64);
  EXPECT_EQ(at(BlockStep::kNextWeights).operator_class, "weights");
  EXPECT_EQ(at(BlockStep::kFeedForwardResidual).name, "feed_forward_residual_norm");
  EXPECT_EQ(operators.size(), static_cast<size_t>(BlockStep::kFeedForwardResidual) + 1);
}

TEST(AttentionPartsTest, OnlyLongVideosAreDividedIntoWholeTiles) {
  const TransformerConfig a14b = FindSyntheticModel("t2v-a14b").value().transformer;
  for (const int64_t tokens : {int64_t{256}, int64_t{75'600}, int64_t{98'000}}) {
    EXPECT_EQ(QueriesAtATime(a14b, tokens), tokens);
  }
  for (int64_t tokens = 99'000; tokens < 600'000; tokens += 12'345) {
    SCOPED_TRACE(tokens);
    const int64_t queries = QueriesAtATime(a14b, tokens);
    EXPECT_LT(queries, tokens);
    EXPECT_EQ(queries % 256, 0);
    // Rounded up to whole tiles.
    EXPECT_LE(AttentionFlops(a14b, queries - 256, tokens), AttentionLimits().part);
    // Parts of about the same size: no more of them than are needed.
    const double least = std::ceil(AttentionFlops(a14b, tokens, tokens) / AttentionLimits().part);
    EXPECT_LE(static_cast<double>((tokens + queries - 1) / queries), least);
  }
  EXPECT_EQ(QueriesAtATime(a14b, 1000, {.whole = 0, .part = 1}), 256) << "a tile at least";
  // LibTorch's kernel for the CPU has other bits for less than three tiles.
  EXPECT_EQ(QueriesAtATime(a14b, 4000, kCpuAttentionLimits), 768);
}

}  // namespace
}  // namespace wan
