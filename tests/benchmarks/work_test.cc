// What a component has to do, against other counts of the same.
#include <gtest/gtest.h>

#include "benchmarks/block_work.h"
#include "benchmarks/vae_work.h"
#include "engine/checkpoint/synthetic_models.h"
#include "engine/models/wan/transformer_cost.h"

namespace wan {
namespace {

SyntheticModel Model(const char* name) { return FindSyntheticModel(name).value(); }

TEST(BlockWorkTest, TheOperatorsAreTheBlocksFlops) {
  for (const char* name : {"ti2v-5b", "t2v-a14b"}) {
    const TransformerConfig config = Model(name).transformer;
    double flop = 0;
    for (const TracedOperator& op : TracedOperators(config, 27280, "bf16")) flop += op.work.flop();
    const BlockFlops expected = TransformerBlockFlops(config, 27280, 1);
    EXPECT_NEAR(flop / (expected.self_attention + expected.rest), 1, 1e-12);
  }
}

TEST(BlockWorkTest, EveryOperatorMovesBytes) {
  for (const TracedOperator& op : TracedOperators(Model("ti2v-5b").transformer, 100, "fp32")) {
    EXPECT_GT(op.work.bytes, 0) << op.name;
    EXPECT_EQ(op.is_product, op.work.product_flop > 0) << op.name;
  }
}

// docs/performance.md: 2.01 PFLOP for 121 frames of 1280x704, 0.64 for 81 of 1280x720.
TEST(VaeWorkTest, PublishedVideosTakeWhatTheDocumentsSay) {
  EXPECT_NEAR(VaeDecodeFlop(Model("ti2v-5b").vae, {1280, 704, 121}) / 1e15, 2.01, 0.005);
  EXPECT_NEAR(VaeDecodeFlop(Model("t2v-a14b").vae, {1280, 720, 81}) / 1e15, 0.64, 0.005);
}

// A latent frame behind the first one is four frames of video, all of them alike.
TEST(VaeWorkTest, FramesAfterTheFirstCostTheSameEach) {
  const VaeConfig vae = Model("t2v-a14b").vae;
  const double one = VaeDecodeFlop(vae, {64, 64, 1});
  const double five = VaeDecodeFlop(vae, {64, 64, 5});
  const double nine = VaeDecodeFlop(vae, {64, 64, 9});
  EXPECT_NEAR(nine - five, five - one, 1e-6 * nine);
  EXPECT_GT(five - one, 2 * one);
  EXPECT_GT(VaeEncodeFlop(vae, {64, 64, 5}), VaeEncodeFlop(vae, {64, 64, 1}));
}

}  // namespace
}  // namespace wan
