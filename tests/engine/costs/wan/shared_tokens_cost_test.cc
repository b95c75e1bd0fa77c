// What the ranks of a shared forward allocate together is no more than the description says of
// each.
#include "engine/costs/wan/shared_tokens_cost.h"

#include <ATen/ops/full.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "engine/checkpoint/synthetic_models.h"
#include "engine/costs/wan/transformer_cost.h"
#include "engine/group/thread_communicator.h"
#include "engine/models/group_transformer.h"
#include "engine/models/wan/transformer.h"
#include "tests/engine/costs/wan/cost_support.h"
#include "tests/engine/random_tensor.h"
#include "tests/support/peak_allocator.h"

namespace wan {
namespace {

// On a GPU these are kernels of ours, which allocate nothing but the attention's result.
const std::set<std::string> kKernels = {"wan::layer_norm_modulate", "wan::gate_residual_norm",
                                        "wan::rms_norm_rope"};

TEST(SharedTokensCostTest, RanksHoldNoMoreThanDescribed) {
  const OneThread one_thread;
  const WithoutOneDnn own_products;
  TransformerConfig config = FindSyntheticModel("ti2v-tiny").value().transformer;
  config.dim = 256;
  config.ffn_dim = 640;
  config.num_heads = 4;
  const SyntheticWeights weights(ExpectedTensors(config));
  constexpr int64_t kFrames = 4;
  constexpr int64_t kSide = 48;
  constexpr int64_t kTokens = kFrames * kSide * kSide / 4;
  const std::vector<std::pair<int64_t, int64_t>> cases = {
      {2, kTokens + 1}, {3, kTokens + 1}, {2, kTokens}, {3, kTokens}};
  for (const auto& [size, overlapped] : cases) {
    std::vector<GroupRank> ranks;
    for (int64_t rank = 0; rank < size; ++rank) {
      ranks.push_back({at::kCPU, LoadWanTransformer(weights, config,
                                                    {.dtype = at::kBFloat16,
                                                     .fewest_overlapped_tokens = overlapped})
                                     .value()});
    }
    const auto group = MakeGroupTransformer(std::move(ranks), &MakeThreadGroup);
    const at::Tensor latents = RandomTensor({1, config.in_channels, kFrames, kSide, kSide}, 2);
    at::Tensor timestep = at::full({1, kTokens}, 500.0);
    timestep.narrow(1, 0, kTokens / kFrames).zero_();
    const std::vector<at::Tensor> contexts(1, RandomTensor({7, config.text_dim}, 1, at::kBFloat16));
    const auto text = group->PrepareText(contexts).value();
    PeakAllocator memory(kKernels);
    memory.Begin();
    const at::Tensor flow = group->Forward(latents, timestep, *text).value();
    const auto described =
        static_cast<uint64_t>(size) * SharedForwardBytes(config, kTokens, 1, size, 2, overlapped);
    EXPECT_LE(memory.peak(), described) << size << " ranks, overlapped from " << overlapped;
    // The ranks do not hold their most at the same time.
    EXPECT_GE(memory.peak(), described / 3) << size;
  }
}

TEST(SharedTokensCostTest, PiecesHaveEveryHeadOnce) {
  EXPECT_EQ(ExchangePieces(8191), 1);
  EXPECT_EQ(ExchangePieces(8192), 3);
  EXPECT_EQ(PieceOfHeads({12, 12}, 0, 3), (Share{12, 3}));
  EXPECT_EQ(PieceOfHeads({12, 12}, 1, 3), (Share{15, 6}));
  EXPECT_EQ(PieceOfHeads({12, 12}, 2, 3), (Share{21, 3}));
  EXPECT_EQ(PieceOfHeads({5, 4}, 0, 1), (Share{5, 4}));
  for (int64_t heads = 0; heads < 45; ++heads) {
    int64_t next = 7;
    for (int64_t piece = 0; piece < 3; ++piece) {
      const Share share = PieceOfHeads({7, heads}, piece, 3);
      EXPECT_EQ(share.first, next) << heads;
      EXPECT_GE(share.count, 0) << heads;
      next += share.count;
    }
    EXPECT_EQ(next, 7 + heads);
  }
}

TEST(SharedTokensCostTest, MoreRanksHoldLess) {
  const TransformerConfig config = FindSyntheticModel("t2v-a14b").value().transformer;
  constexpr int64_t kTokens = 75600;
  EXPECT_EQ(SharedForwardBytes(config, kTokens, 1, 1, 2), ForwardBytes(config, kTokens, 1, 2));
  EXPECT_LT(SharedForwardBytes(config, kTokens, 1, 4, 2),
            SharedForwardBytes(config, kTokens, 1, 2, 2));
  // Two divide the guidance and compute a video each; a step without guidance is shared.
  EXPECT_EQ(
      GroupForwardBytes(config, kTokens, 2, 2, 2),
      std::max(ForwardBytes(config, kTokens, 1, 2), SharedForwardBytes(config, kTokens, 1, 2, 2)));
  EXPECT_LT(GroupForwardBytes(config, kTokens, 2, 4, 2),
            GroupForwardBytes(config, kTokens, 2, 2, 2));
}

}  // namespace
}  // namespace wan
