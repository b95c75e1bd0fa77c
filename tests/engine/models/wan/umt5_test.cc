#include "engine/models/wan/umt5.h"

#include <ATen/ops/equal.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "engine/models/wan/relative_position.h"
#include "tests/engine/golden_dit.h"
#include "tests/engine/golden_tensors.h"
#include "tests/engine/in_memory_weights.h"

namespace wan {
namespace {

using testing::HasSubstr;

constexpr double kTolerance = 1e-5;
constexpr char kFile[] = "umt5/ti2v-5b.safetensors";

std::unique_ptr<TextEncoder> Load(const std::string& layout = "original",
                                  at::ScalarType dtype = at::kFloat,
                                  bool eight_bit_weights = false) {
  const Checkpoint& checkpoint = GoldenCheckpoint("ti2v-5b/" + layout);
  return LoadUmt5(checkpoint.text_encoder(), checkpoint.text_encoder_config(),
                  {.dtype = dtype, .eight_bit_weights = eight_bit_weights})
      .value();
}

std::vector<int64_t> Ids(const at::Tensor& tensor) {
  const at::Tensor ids = tensor.to(at::kLong);
  return {ids.const_data_ptr<int64_t>(), ids.const_data_ptr<int64_t>() + ids.numel()};
}

class GoldenUmt5Test : public testing::TestWithParam<int> {
 protected:
  const std::vector<int64_t> ids_ = Ids(LoadGolden(kFile, "ids_" + std::to_string(GetParam())));
  const at::Tensor hidden_ = LoadGolden(kFile, "hidden_" + std::to_string(GetParam()));
};

TEST_P(GoldenUmt5Test, EqualsTheReference) {
  for (const std::string layout : {"original", "diffusers"}) {
    const at::Tensor hidden = Load(layout)->Encode(ids_).value();
    const double error = RelativeError(hidden, hidden_);
    std::printf("golden: umt5/%d (%zu ids) %s relative error %.1e\n", GetParam(), ids_.size(),
                layout.c_str(), error);
    EXPECT_LE(error, kTolerance);
  }
}

TEST_P(GoldenUmt5Test, IsCloseInBf16) {
  const at::Tensor hidden = Load("original", at::kBFloat16)->Encode(ids_).value();
  EXPECT_EQ(hidden.scalar_type(), at::kBFloat16);
  const double error = RelativeError(hidden, hidden_);
  std::printf("golden: umt5/%d bf16 relative error %.1e\n", GetParam(), error);
  EXPECT_LE(error, 1e-2);
  EXPECT_GT(error, 10 * kTolerance);
}

TEST_P(GoldenUmt5Test, IsNearWithWeightsInEightBits) {
  for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16}) {
    const auto encoder = Load("original", dtype, /*eight_bit_weights=*/true);
    const at::Tensor hidden = encoder->Encode(ids_).value();
    EXPECT_EQ(hidden.scalar_type(), dtype);
    const double error = RelativeError(hidden, hidden_);
    std::printf("golden: umt5/%d in 8 bits, %s relative error %.1e\n", GetParam(),
                at::toString(dtype), error);
    EXPECT_LE(error, 2.5e-2);
    EXPECT_GT(error, 2e-3);
    EXPECT_LT(encoder->WeightBytes(), Load("original", dtype)->WeightBytes());
  }
}

// Case 2 is cut to 512 ids, case 3 the empty text.
INSTANTIATE_TEST_SUITE_P(Golden, GoldenUmt5Test, testing::Range(0, 4));

TEST(Umt5, EveryIdMatters) {
  const auto encoder = Load();
  const std::vector<int64_t> ids{300, 301, 302, 1};
  const at::Tensor hidden = encoder->Encode(ids).value();
  for (size_t i = 0; i < ids.size(); ++i) {
    std::vector<int64_t> other = ids;
    other[i] += 40;
    EXPECT_GT(RelativeError(encoder->Encode(other).value(), hidden), 1e-2) << i;
  }
  std::vector<int64_t> swapped = ids;
  std::swap(swapped[0], swapped[1]);
  EXPECT_GT(RelativeError(encoder->Encode(swapped).value()[3], hidden[3]), 1e-4);
}

TEST(Umt5, RefusesIdsOutsideTheVocabulary) {
  const auto encoder = Load();
  const auto encode = [&](const std::vector<int64_t>& ids) {
    return encoder->Encode(ids).status();
  };
  EXPECT_EQ(encode({}).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(encode({5, -1}).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(encode({960, 1}).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(encode({960, 1}).message()), HasSubstr("960"));
  EXPECT_TRUE(encode({959, 1}).ok());
}

TEST(Umt5, WeightBytesAreThoseOfTheCheckpoint) {
  int64_t bytes = 0;
  for (const TensorInfo& tensor : GoldenCheckpoint("ti2v-5b/original").text_encoder().Tensors()) {
    bytes += static_cast<int64_t>(tensor.bytes);
  }
  EXPECT_EQ(Load()->WeightBytes(), bytes);
}

TEST(LoadUmt5, NamesWhatTheCheckpointLacks) {
  const Checkpoint& checkpoint = GoldenCheckpoint("ti2v-5b/original");
  for (const std::string name :
       {"token_embedding.weight", "norm.weight", "blocks.1.pos_embedding.embedding.weight"}) {
    InMemoryWeights weights = InMemoryWeights::CopyOf(checkpoint.text_encoder());
    weights.Remove(name);
    const absl::Status status = LoadUmt5(weights, checkpoint.text_encoder_config(), {}).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kNotFound) << name;
    EXPECT_THAT(std::string(status.message()), HasSubstr(name));
  }
}

// In integers: with 32 buckets, 8 distances have their own, and from 8 on bucket 8 + k begins where
// 16 * log(d / 8) / log(256) reaches k, which is d^2 >= 64 * 2^k.
TEST(RelativePositionBuckets, AreTheLogarithmicOnesOfT5) {
  constexpr int64_t kLength = 300;
  const at::Tensor buckets = RelativePositionBuckets(kLength, 32);
  const auto values = buckets.accessor<int64_t, 2>();
  for (int64_t query = 0; query < kLength; ++query) {
    for (int64_t key = 0; key < kLength; ++key) {
      const int64_t distance = std::abs(key - query);
      int64_t expected = distance;
      if (distance >= 8) {
        expected = 8;
        while (expected < 15 && distance * distance >= 64 << (expected - 7)) ++expected;
      }
      if (key > query) expected += 16;
      ASSERT_EQ(values[query][key], expected) << query << ", " << key;
    }
  }
}

}  // namespace
}  // namespace wan
