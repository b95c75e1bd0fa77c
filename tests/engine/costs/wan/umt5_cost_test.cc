// The text encoder's description holds for the code: the loader's groups, and what is allocated.
#include "engine/costs/wan/umt5_cost.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/checkpoint/synthetic_models.h"
#include "engine/models/wan/umt5.h"
#include "tests/engine/costs/wan/cost_support.h"
#include "tests/support/peak_allocator.h"

namespace wan {
namespace {

struct Case {
  std::string name;
  TextEncoderConfig config;
  int64_t tokens = 96;
  bool attention_is_largest = true;
};

TextEncoderConfig Tiny() { return FindSyntheticModel("ti2v-tiny").value().text_encoder; }

// In each another part is the largest.
std::vector<Case> Cases() {
  std::vector<Case> cases;
  cases.push_back({"tiny", Tiny()});
  cases.push_back({"long_text", Tiny(), 256});
  cases.back().config.num_heads = 32;
  cases.back().config.head_dim = 8;
  cases.push_back({"wide_feed_forward", Tiny(), 96, /*attention_is_largest=*/false});
  cases.back().config.ffn_dim = 4096;
  cases.push_back({"wide_heads", Tiny()});
  cases.back().config.head_dim = 256;
  cases.push_back({"wide_stream", Tiny()});
  cases.back().config.dim = 2048;
  cases.push_back({"many_blocks", Tiny()});
  cases.back().config.num_layers = 8;
  return cases;
}

// In the attention the walk has blocks that a CPU does without: the attention there reads its bias
// as it is and writes rows that need no copy, and conversions to the dtype that a tensor has give
// that tensor.
int64_t BytesOfGpuOnly(const TextEncoderConfig& config, int64_t tokens, int64_t bytes) {
  const int64_t aligned_bias = config.num_heads * tokens * tokens * bytes;
  const int64_t rows = config.num_heads * config.head_dim * tokens * bytes;
  const int64_t converted = (bytes == 4 ? 2 : 1) * tokens * config.dim * bytes;
  return aligned_bias + rows + converted;
}

class TextEncoderCostTest : public testing::TestWithParam<Case> {
 protected:
  static std::unique_ptr<TextEncoder> Load(const TextEncoderConfig& config, at::ScalarType dtype,
                                           std::shared_ptr<ComponentWeights> weights,
                                           bool eight_bits = false) {
    const SyntheticWeights source(ExpectedTensors(config));
    return LoadUmt5(
               source, config,
               {.dtype = dtype, .weights = std::move(weights), .eight_bit_weights = eight_bits})
        .value();
  }
};

TEST_P(TextEncoderCostTest, LoaderEntersTheDescribedGroups) {
  const TextEncoderConfig& config = GetParam().config;
  for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16}) {
    for (const bool eight_bits : {false, true}) {
      const auto weights = EmptyWeights();
      const auto encoder = Load(config, dtype, weights, eight_bits);
      ExpectLoadedAsDescribed(TextEncoderWeightGroups(config, eight_bits), *weights, dtype);
    }
  }
}

// A CPU restores matrices with less than a megabyte of its own.
TEST_P(TextEncoderCostTest, EightBitsTakeOneRestoredMatrixMore) {
  const OneThread one_thread;
  const WithoutOneDnn own_products;
  const auto& [name, config, tokens, attention_is_largest] = GetParam();
  SCOPED_TRACE(name);
  const std::vector<int64_t> ids(static_cast<size_t>(tokens), 3);
  const auto peak = [&](bool eight_bits) {
    const auto encoder = Load(config, at::kFloat, nullptr, eight_bits);
    PeakAllocator memory;
    encoder->Encode(ids).value();
    return memory.peak();
  };
  EXPECT_LE(peak(true), peak(false) + RestoredMatrixBytes(config, 4));
}

TEST_P(TextEncoderCostTest, WalkHoldsWhatIsAllocated) {
  const OneThread one_thread;
  const WithoutOneDnn own_products;
  const auto& [name, config, tokens, attention_is_largest] = GetParam();
  SCOPED_TRACE(name);
  const std::vector<int64_t> ids(static_cast<size_t>(tokens), 3);
  for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16}) {
    SCOPED_TRACE(at::toString(dtype));
    const auto encoder = Load(config, dtype, nullptr);
    PeakAllocator memory;
    const at::Tensor states = encoder->Encode(ids).value();
    const auto bytes = static_cast<int64_t>(at::elementSize(dtype));
    const int64_t of_gpu = attention_is_largest ? BytesOfGpuOnly(config, tokens, bytes) : 0;
    const auto walk = static_cast<double>(TextEncodingBytes(config, tokens, bytes));
    const auto on_cpu = walk - static_cast<double>(of_gpu);
    const auto allocated = static_cast<double>(memory.peak());
    if (dtype == at::kFloat) {
      EXPECT_NEAR(allocated / on_cpu, 1, 0.02);
      continue;
    }
    // In bf16 LibTorch's attention on a CPU keeps scores in fp32 as well.
    EXPECT_GE(allocated, 0.94 * on_cpu);
    EXPECT_LE(allocated, 1.05 * walk);
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, TextEncoderCostTest, testing::ValuesIn(Cases()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace wan
