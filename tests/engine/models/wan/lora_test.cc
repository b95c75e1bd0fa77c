// Transformers with LoRAs against checkpoints that were merged before they were loaded.
#include <ATen/ops/equal.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "engine/models/wan/transformer.h"
#include "engine/weights/lora_patch.h"
#include "tests/engine/formats/files.h"
#include "tests/engine/golden_dit.h"
#include "tests/engine/golden_tensors.h"
#include "tests/engine/lora_fixture.h"
#include "tests/engine/random_tensor.h"

namespace wan {
namespace {

using testing::TempFolder;
using ::testing::TestWithParam;
using ::testing::ValuesIn;

constexpr double kTolerance = 1e-5;
using Home = ComponentWeights::Home;

// A golden transformer whose weights can be patched, and its case.
class Adapted {
 public:
  // With `rounds` forwards are of 8 bits, and with `keeps_rounded` so are the weights.
  explicit Adapted(const GoldenDitCase& golden, Home home = Home::kDevice,
                   at::ScalarType dtype = at::kFloat, bool rounds = false,
                   bool keeps_rounded = false)
      : golden_(golden),
        checkpoint_(GoldenCheckpoint(golden.checkpoint + "/original")),
        policy_{.eight_bits = rounds},
        // The checkpoint lives as long as the program.
        weights_(std::make_shared<ComponentWeights>(
            MakeWeightMover(at::kCPU), home,
            std::shared_ptr<const WeightSource>(std::shared_ptr<void>(), &source()))),
        transformer_(Load(source(), dtype, weights_, keeps_rounded)) {}

  const TransformerConfig& config() const { return checkpoint_.transformer_config(golden_.expert); }
  const WeightSource& source() const { return checkpoint_.transformer(golden_.expert); }
  ComponentWeights& weights() { return *weights_; }

  std::shared_ptr<const LoraWeights> Open(const std::string& path) {
    const absl::StatusOr<LoraFile> file = ReadLoraFile(path, config());
    EXPECT_TRUE(file.ok()) << file.status();
    return LoraWeights::Load(*file, weights_->mover());
  }

  bool Select(std::vector<ScaledLora> loras) {
    return weights_->SetPatch(MakeLoraPatch(*weights_, loras));
  }

  at::Tensor Predict() { return Predict(*transformer_); }

  // The output of a transformer that is loaded from `merged`.
  at::Tensor PredictMerged(const WeightSource& merged) {
    return Predict(*Load(merged, at::kFloat, nullptr));
  }

 private:
  std::unique_ptr<VideoTransformer> Load(const WeightSource& source, at::ScalarType dtype,
                                         std::shared_ptr<ComponentWeights> weights,
                                         bool keeps_rounded = false) const {
    return LoadWanTransformer(source, config(),
                              {.device = at::kCPU,
                               .dtype = dtype,
                               .weights = std::move(weights),
                               .eight_bit_weights = keeps_rounded})
        .value();
  }

  at::Tensor Predict(VideoTransformer& transformer) const {
    const auto text = transformer.PrepareText(golden_.contexts).value();
    return transformer.Forward(golden_.latents, golden_.timestep, *text, {}, policy_).value();
  }

  const GoldenDitCase& golden_;
  const Checkpoint& checkpoint_;
  const ForwardPolicy policy_;
  const std::shared_ptr<ComponentWeights> weights_;
  const std::unique_ptr<VideoTransformer> transformer_;
};

const std::vector<GoldenDitCase>& Cases() {
  static const auto* const cases = new std::vector<GoldenDitCase>(LoadGoldenDitCases());
  return *cases;
}

// What LoRAs may change besides matrices.
TestLora WithAdditions(TestLora lora, const WeightSource& source) {
  uint64_t seed = 77;
  for (const char* const name :
       {"blocks.0.modulation", "blocks.1.self_attn.norm_q.weight", "blocks.0.norm3.bias",
        "blocks.1.self_attn.v.bias", "head.modulation", "blocks.0.ffn.2.bias"}) {
    lora.additions[name] = RandomTensor(source.Find(name)->shape, ++seed, at::kFloat, 0, 0.05);
  }
  return lora;
}

class LoraGoldenTest : public TestWithParam<GoldenDitCase> {};

// Both experts of all models: merged while they run equals merged before, and goes without trace.
TEST_P(LoraGoldenTest, EqualsACheckpointMergedBefore) {
  const TempFolder folder;
  Adapted adapted(GetParam());
  const at::Tensor base = adapted.Predict();
  const TestLora first =
      WithAdditions(TestLora::Random(adapted.config(), 4, 1000), adapted.source());
  const TestLora second = TestLora::Random(adapted.config(), 7, 2000);
  const auto one = adapted.Open(first.Write(folder.string(), LoraStyle::kComfy));
  const auto two = adapted.Open(second.Write(folder.string(), LoraStyle::kDiffusers));

  struct Mix {
    double first;
    double second;
  };
  for (const Mix& mix : {Mix{1, 0}, Mix{0.6, 0.8}, Mix{-0.7, 0}, Mix{0, 1.5}}) {
    InMemoryWeights merged = InMemoryWeights::CopyOf(adapted.source());
    first.MergeInto(merged, mix.first);
    second.MergeInto(merged, mix.second);
    const at::Tensor expected = adapted.PredictMerged(merged);
    EXPECT_TRUE(adapted.Select({{one, mix.first}, {two, mix.second}}));
    const at::Tensor output = adapted.Predict();
    const double error = RelativeError(output, expected);
    std::printf("golden: %s with LoRAs %g and %g: relative error %.1e, base is %.1e away\n",
                GetParam().id.c_str(), mix.first, mix.second, error, RelativeError(base, expected));
    EXPECT_LE(error, kTolerance);
    EXPECT_GT(RelativeError(base, expected), 1e-2) << "the LoRA changes nothing";
    EXPECT_TRUE(at::equal(adapted.Predict(), output)) << "merged once, not twice";
  }

  EXPECT_TRUE(adapted.Select({}));
  EXPECT_TRUE(at::equal(adapted.Predict(), base)) << "the base has changed";
  EXPECT_FALSE(adapted.Select({{one, 0}, {two, 0}})) << "scale 0 is the base";
  EXPECT_TRUE(at::equal(adapted.Predict(), base));
}

std::string CaseName(const ::testing::TestParamInfo<GoldenDitCase>& info) {
  std::string name = info.param.id.substr(info.param.id.find('/') + 1);
  for (char& c : name) c = c == '-' ? '_' : c;
  return name;
}

INSTANTIATE_TEST_SUITE_P(Golden, LoraGoldenTest, ValuesIn(Cases()), CaseName);

// The same LoRA in every style gives the same bits.
TEST(LoraStyleTest, EveryStyleGivesTheSame) {
  const TempFolder folder;
  Adapted adapted(Cases().front());
  const TestLora lora = TestLora::Random(adapted.config(), 4, 1);
  at::Tensor expected;
  for (const LoraStyle style : kLoraStyles) {
    const auto opened = adapted.Open(lora.Write(folder.string(), style));
    adapted.Select({{opened, 0.8}});
    const at::Tensor output = adapted.Predict();
    if (!expected.defined()) expected = output;
    EXPECT_TRUE(at::equal(output, expected)) << StyleName(style);
  }
  InMemoryWeights merged = InMemoryWeights::CopyOf(adapted.source());
  lora.MergeInto(merged, 0.8);
  EXPECT_LE(RelativeError(expected, adapted.PredictMerged(merged)), kTolerance);
}

TEST(LoraStyleTest, RankStabilised) {
  const TempFolder folder;
  Adapted adapted(Cases().front());
  TestLora lora = TestLora::Random(adapted.config(), 9, 1);
  lora.alpha = 3;
  lora.rank_stabilised = true;
  InMemoryWeights merged = InMemoryWeights::CopyOf(adapted.source());
  lora.MergeInto(merged, 1);
  const at::Tensor expected = adapted.PredictMerged(merged);
  for (const LoraStyle style : {LoraStyle::kDiffusers, LoraStyle::kPeft}) {
    adapted.Select({{adapted.Open(lora.Write(folder.string(), style)), 1}});
    EXPECT_LE(RelativeError(adapted.Predict(), expected), kTolerance) << StyleName(style);
  }
}

// Files in half precision are read as they are: the factors are those numbers.
TEST(LoraStyleTest, HalfPrecisionFiles) {
  const TempFolder folder;
  Adapted adapted(Cases().front());
  for (const at::ScalarType dtype : {at::kBFloat16, at::kHalf}) {
    TestLora lora = TestLora::Random(adapted.config(), 4, 1);
    for (auto& [module, pair] : lora.pairs) {
      pair.down = pair.down.to(dtype).to(at::kFloat);
      pair.up = pair.up.to(dtype).to(at::kFloat);
    }
    InMemoryWeights merged = InMemoryWeights::CopyOf(adapted.source());
    lora.MergeInto(merged, 1);
    adapted.Select({{adapted.Open(lora.Write(folder.string(), LoraStyle::kComfy, dtype)), 1}});
    EXPECT_LE(RelativeError(adapted.Predict(), adapted.PredictMerged(merged)), kTolerance);
  }
}

// Wherever the weights live, the bits are the same, with and without the LoRA, in bf16, too.
TEST(LoraResidencyTest, PoliciesGiveTheSameBits) {
  const TempFolder folder;
  for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16}) {
    Adapted resident(Cases().front(), Home::kDevice, dtype);
    const TestLora lora = TestLora::Random(resident.config(), 4, 1);
    const std::string path = lora.Write(folder.string(), LoraStyle::kComfy);
    const at::Tensor base = resident.Predict();
    resident.Select({{resident.Open(path), 0.5}});
    const at::Tensor expected = resident.Predict();
    ASSERT_FALSE(at::equal(base, expected));

    Adapted moved(Cases().front(), Home::kHost, dtype);
    const auto opened = moved.Open(path);
    for (int round = 0; round < 2; ++round) {
      moved.weights().BringUp();
      moved.Select({{opened, 0.5}});
      EXPECT_TRUE(at::equal(moved.Predict(), expected)) << "host";
      moved.weights().Park();
      moved.weights().Stream();
      EXPECT_TRUE(at::equal(moved.Predict(), expected)) << "stream";
      EXPECT_TRUE(at::equal(moved.Predict(), expected)) << "stream, second forward";
      moved.Select({});
      EXPECT_TRUE(at::equal(moved.Predict(), base)) << "stream without";
      moved.weights().Park();
      moved.Select({{opened, 0.5}});
      moved.Select({});
      moved.weights().BringUp();
      EXPECT_TRUE(at::equal(moved.Predict(), base)) << "host without";
      moved.weights().Park();
    }
  }
}

// LoRAs are added to what was in the file before it was rounded, wherever the rounded weights live.
TEST(LoraResidencyTest, WeightsKeptInEightBitsGiveTheBitsOfRoundingMergedOnes) {
  const TempFolder folder;
  for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16}) {
    Adapted whole(Cases().front(), Home::kDevice, dtype, /*rounds=*/true);
    const std::string one = WithAdditions(TestLora::Random(whole.config(), 4, 1), whole.source())
                                .Write(folder.string(), LoraStyle::kComfy);
    const std::string two =
        TestLora::Random(whole.config(), 3, 2).Write(folder.string(), LoraStyle::kDiffusers);
    const at::Tensor base = whole.Predict();
    const auto predict_with = [&](Adapted& adapted) {
      adapted.Select({{adapted.Open(one), 0.5}, {adapted.Open(two), -0.8}});
      return adapted.Predict();
    };
    const at::Tensor expected = predict_with(whole);
    ASSERT_FALSE(at::equal(base, expected));
    for (const Home home : {Home::kDevice, Home::kHost, Home::kDisk}) {
      Adapted kept(Cases().front(), home, dtype, /*rounds=*/true, /*keeps_rounded=*/true);
      for (int round = 0; round < 2; ++round) {
        kept.weights().BringUp();
        EXPECT_TRUE(at::equal(kept.Predict(), base));
        EXPECT_TRUE(at::equal(predict_with(kept), expected));
        EXPECT_TRUE(at::equal(kept.Predict(), expected)) << "merged once, not twice";
        kept.weights().Stream();
        EXPECT_TRUE(at::equal(kept.Predict(), expected)) << "stream";
        kept.Select({});
        EXPECT_TRUE(at::equal(kept.Predict(), base)) << "stream without";
        kept.weights().Drop();
      }
    }
  }
}

TEST(LoraResidencyTest, FinishPatchLeavesNothingToDo) {
  const TempFolder folder;
  Adapted adapted(Cases().front());
  const TestLora lora = TestLora::Random(adapted.config(), 4, 1);
  const auto opened = adapted.Open(lora.Write(folder.string(), LoraStyle::kComfy));
  adapted.weights().KeepHostCopy();
  const auto patch = MakeLoraPatch(adapted.weights(), std::vector<ScaledLora>{{opened, 1}});
  EXPECT_TRUE(adapted.weights().SetPatch(patch));
  EXPECT_TRUE(adapted.weights().FinishPatch().ok());
  EXPECT_FALSE(adapted.weights().SetPatch(patch)) << "it is in already";
  // A tensor of a patched group has other bits than before.
  EXPECT_TRUE(adapted.weights().SetPatch(nullptr));
}

}  // namespace
}  // namespace wan
