// What a component has to do, against other counts of the same.
#include <gtest/gtest.h>

#include "benchmarks/block_work.h"
#include "engine/checkpoint/synthetic_models.h"
#include "engine/costs/wan/transformer_cost.h"

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

}  // namespace
}  // namespace wan
