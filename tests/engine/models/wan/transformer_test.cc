#include "engine/models/wan/transformer.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "engine/costs/wan/transformer_cost.h"
#include "tests/engine/golden_dit.h"
#include "tests/engine/golden_tensors.h"
#include "tests/engine/in_memory_weights.h"
#include "tests/engine/random_tensor.h"

namespace wan {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr double kTolerance = 1e-5;

std::unique_ptr<VideoTransformer> Load(const std::string& layout = "ti2v-5b/original",
                                       int expert = 0, at::ScalarType dtype = at::kFloat,
                                       bool eight_bit_weights = false) {
  const Checkpoint& checkpoint = GoldenCheckpoint(layout);
  return LoadWanTransformer(checkpoint.transformer(expert), checkpoint.transformer_config(expert),
                            {.dtype = dtype, .eight_bit_weights = eight_bit_weights})
      .value();
}

at::Tensor Predict(VideoTransformer& transformer, const at::Tensor& latents,
                   const at::Tensor& timestep, const std::vector<at::Tensor>& contexts) {
  const auto text = transformer.PrepareText(contexts).value();
  return transformer.Forward(latents, timestep, *text).value();
}

class GoldenDitTest : public testing::TestWithParam<GoldenDitCase> {};

TEST_P(GoldenDitTest, EqualsTheReference) {
  const GoldenDitCase& golden = GetParam();
  for (const std::string layout : {"original", "diffusers"}) {
    const auto transformer = Load(golden.checkpoint + "/" + layout, golden.expert);
    const at::Tensor output =
        Predict(*transformer, golden.latents, golden.timestep, golden.contexts);
    const double error = RelativeError(output, golden.output);
    std::printf("golden: %s %s relative error %.1e\n", golden.id.c_str(), layout.c_str(), error);
    EXPECT_LE(error, kTolerance);
    EXPECT_EQ(output.scalar_type(), at::kFloat);
    EXPECT_TRUE(output.is_contiguous());
  }
}

TEST_P(GoldenDitTest, IsNoFurtherOffInBf16ThanUpstream) {
  const GoldenDitCase& golden = GetParam();
  const auto transformer = Load(golden.checkpoint + "/original", golden.expert, at::kBFloat16);
  const at::Tensor output = Predict(*transformer, golden.latents, golden.timestep, golden.contexts);
  const double error = RelativeError(output, golden.output);
  std::printf("golden: %s bf16 relative error %.2e, upstream's %.2e\n", golden.id.c_str(), error,
              golden.bf16_error);
  EXPECT_LE(error, kBf16Slack * golden.bf16_error);
  // It is bf16 that ran.
  EXPECT_GT(error, 10 * kTolerance);
  EXPECT_EQ(output.scalar_type(), at::kFloat);
}

std::string CaseName(const testing::TestParamInfo<GoldenDitCase>& info) {
  std::string name = info.param.id.substr(info.param.id.find('/') + 1);
  for (char& c : name) {
    if (c == '-') c = '_';
  }
  return name;
}

INSTANTIATE_TEST_SUITE_P(Golden, GoldenDitTest, testing::ValuesIn(LoadGoldenDitCases()), CaseName);

// Inputs of the small ti2v-5b: 2 x 2 x 3 tokens.
class TransformerTest : public testing::Test {
 protected:
  static constexpr int64_t kTokens = 12;

  static at::Tensor Latents(int64_t batch = 1, uint64_t seed = 1) {
    return RandomTensor({batch, 48, 2, 4, 6}, seed);
  }
  static at::Tensor Context(int64_t rows = 9, uint64_t seed = 2) {
    return RandomTensor({rows, 64}, seed);
  }
  static at::Tensor Timestep(double t, int64_t batch = 1) {
    return at::full({batch}, t, at::kFloat);
  }

  const std::unique_ptr<VideoTransformer> transformer_ = Load();
};

// Of the operators of a profile, by name.
std::vector<std::string> NamesOf(const BlockProfile& profile) {
  std::vector<std::string> names;
  for (const TimedOperator& timed : profile.operators) names.emplace_back(timed.work.name);
  return names;
}

TEST_F(TransformerTest, EightBitsAreNearTheExactFlow) {
  for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16}) {
    const auto transformer = Load("ti2v-5b/original", 0, dtype);
    const auto text = transformer->PrepareText(std::vector{Context()}).value();
    const auto forward = [&](const ForwardPolicy& policy) {
      return transformer->Forward(Latents(), Timestep(700), *text, {}, policy).value();
    };
    const at::Tensor exact = forward({});
    const at::Tensor rounded = forward({.eight_bits = true});
    const double error = RelativeError(rounded, exact);
    EXPECT_GT(error, 1e-3);
    EXPECT_LT(error, 6e-2);
    EXPECT_TRUE(at::equal(forward({.eight_bits = true}), rounded));
    // Weights and memory that the forwards share stay as they were.
    EXPECT_TRUE(at::equal(forward({}), exact));
    const double of_one = RelativeError(forward({.eight_bits = true, .exact_blocks = {0}}), exact);
    EXPECT_GT(of_one, 1e-4);
    EXPECT_LT(of_one, error);
  }
}

TEST_F(TransformerTest, WeightsKeptInEightBitsGiveTheBitsOfRoundingThemForEachForward) {
  for (const std::string layout : {"ti2v-5b/original", "t2v-a14b/original"}) {
    for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16}) {
      const auto forward = [&](VideoTransformer& transformer, const ForwardPolicy& policy) {
        const at::Tensor latents = RandomTensor({1, transformer.config().in_channels, 2, 4, 6}, 1);
        const auto text = transformer.PrepareText(std::vector{Context()}).value();
        return transformer.Forward(latents, Timestep(700), *text, {}, policy);
      };
      const auto whole = Load(layout, 0, dtype);
      const auto kept = Load(layout, 0, dtype, /*eight_bit_weights=*/true);
      EXPECT_LT(kept->WeightBytes(), whole->WeightBytes());
      EXPECT_TRUE(at::equal(forward(*kept, {.eight_bits = true}).value(),
                            forward(*whole, {.eight_bits = true}).value()));
      for (const ForwardPolicy& policy :
           {ForwardPolicy{}, ForwardPolicy{.eight_bits = true, .exact_blocks = {0}},
            ForwardPolicy{.eight_bits = true, .exact_blocks = {1}}}) {
        EXPECT_EQ(forward(*kept, policy).status().code(), absl::StatusCode::kInvalidArgument);
      }
    }
  }
}

TEST_F(TransformerTest, ExactBlocksKeepTheirWeights) {
  const Checkpoint& checkpoint = GoldenCheckpoint("ti2v-5b/original");
  const auto mixed = LoadWanTransformer(checkpoint.transformer(), checkpoint.transformer_config(),
                                        {.eight_bit_weights = true, .exact_blocks = {1}})
                         .value();
  const auto forward = [&](VideoTransformer& transformer, const ForwardPolicy& policy) {
    const auto text = transformer.PrepareText(std::vector{Context()}).value();
    return transformer.Forward(Latents(), Timestep(700), *text, {}, policy);
  };
  const ForwardPolicy policy{.eight_bits = true, .exact_blocks = {1}};
  EXPECT_TRUE(at::equal(forward(*mixed, policy).value(), forward(*transformer_, policy).value()));
  EXPECT_FALSE(at::equal(forward(*mixed, policy).value(),
                         forward(*transformer_, {.eight_bits = true}).value()));
  // A block with whole weights may round them, the other has no whole weights.
  EXPECT_TRUE(at::equal(forward(*mixed, {.eight_bits = true}).value(),
                        forward(*transformer_, {.eight_bits = true}).value()));
  EXPECT_THAT(std::string(forward(*mixed, {}).status().message()), HasSubstr("block 0"));
}

TEST_F(TransformerTest, ReusesWhatTheBlocksHaveAdded) {
  const auto text = transformer_->PrepareText(std::vector{Context()}).value();
  const auto forward = [&](double timestep, BlockUse use) {
    return transformer_->Forward(Latents(), Timestep(timestep), *text, {}, {.blocks = use});
  };
  EXPECT_EQ(forward(700, BlockUse::kReuse).status().code(), absl::StatusCode::kInvalidArgument);
  const at::Tensor computed = forward(700, BlockUse::kCompute).value();
  EXPECT_TRUE(at::equal(forward(700, BlockUse::kComputeAndKeep).value(), computed));
  // The same blocks' change to the same latents: only its rounding differs.
  EXPECT_LE(RelativeError(forward(700, BlockUse::kReuse).value(), computed), 1e-5);
  // At another timestep the head differs, and the blocks would.
  const at::Tensor later = forward(690, BlockUse::kReuse).value();
  const at::Tensor truth = forward(690, BlockUse::kCompute).value();
  EXPECT_LT(RelativeError(later, truth), RelativeError(computed, truth));
  EXPECT_FALSE(at::equal(later, truth));
  EXPECT_EQ(transformer_
                ->Forward(RandomTensor({1, 48, 2, 4, 4}, 1), Timestep(690), *text, {},
                          {.blocks = BlockUse::kReuse})
                .status()
                .code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_F(TransformerTest, TellsHowMuchTheKeptBlocksChange) {
  const auto text = transformer_->PrepareText(std::vector{Context()}).value();
  const auto keep = [&](double timestep) {
    EXPECT_TRUE(transformer_
                    ->Forward(Latents(), Timestep(timestep), *text, {},
                              {.blocks = BlockUse::kComputeAndKeep})
                    .ok());
    return text->ChangeRatio();
  };
  EXPECT_EQ(text->ChangeRatio(), std::nullopt) << "nothing was kept";
  EXPECT_EQ(keep(900), std::nullopt) << "nothing came before";
  EXPECT_EQ(keep(900), 1.0);
  const std::optional<double> down = keep(500);
  const std::optional<double> up = keep(900);
  ASSERT_TRUE(down.has_value() && up.has_value());
  EXPECT_NE(*down, 1.0);
  EXPECT_NEAR(*down * *up, 1, 0.1) << "ratios there and back";
}

TEST_F(TransformerTest, AMarkedForwardHasTheSameBitsAndEveryOperatorOfABlock) {
  const std::vector<at::Tensor> contexts{Context(9, 2), Context(30, 3)};
  const auto text = transformer_->PrepareText(contexts).value();
  const auto forward = [&] {
    return transformer_->Forward(Latents(2), Timestep(700, 2), *text).value();
  };
  const at::Tensor plain = forward();
  BlockMarks marks;
  EXPECT_EQ(marks.Profile("forward"), nullptr);
  transformer_->MarkBlock(&marks);
  EXPECT_TRUE(at::equal(forward(), plain));
  const auto profile = marks.Profile("forward");
  ASSERT_NE(profile, nullptr);
  EXPECT_EQ(profile->part, "forward");
  EXPECT_EQ(profile->texts, 2);
  const TransformerConfig& config = transformer_->config();
  EXPECT_EQ(profile->block, (config.num_layers - 1) / 2);
  const std::vector<BlockOperator> expected = BlockOperators(config, kTokens, 2, 4);
  ASSERT_EQ(profile->operators.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(profile->operators[i].work.name, expected[i].name);
    EXPECT_EQ(profile->operators[i].work.flops, expected[i].flops);
    EXPECT_GE(profile->operators[i].seconds, 0);
  }
  // Only that forward was marked.
  forward();
  EXPECT_EQ(marks.Profile("forward")->operators.size(), expected.size());
}

// Records by keeping the work, and does it again.
class RepeatingRecorder final : public DeviceGraphRecorder {
 public:
  std::unique_ptr<DeviceGraph> Record(const std::function<void()>& work) override {
    return std::make_unique<Graph>(work, replayed);
  }
  int replayed = 0;

 private:
  class Graph final : public DeviceGraph {
   public:
    Graph(std::function<void()> work, int& replayed)
        : work_(std::move(work)), replayed_(replayed) {}
    void Replay() override {
      ++replayed_;
      work_();
    }

   private:
    const std::function<void()> work_;
    int& replayed_;
  };
};

TEST_F(TransformerTest, AMarkedForwardIsComputedWhereOthersAreReplayed) {
  const auto recorder = std::make_shared<RepeatingRecorder>();
  const Checkpoint& checkpoint = GoldenCheckpoint("ti2v-5b/original");
  const auto transformer =
      LoadWanTransformer(checkpoint.transformer(0), checkpoint.transformer_config(0),
                         {.graphs = recorder})
          .value();
  transformer->RecordForwards(true);
  const auto text = transformer->PrepareText({{Context()}}).value();
  const auto forward = [&](double t) {
    return transformer->Forward(Latents(), Timestep(t), *text).value();
  };
  forward(900);
  forward(800);
  forward(700);
  const int before = recorder->replayed;
  EXPECT_EQ(before, 2) << "the second forward is recorded";
  BlockMarks marks;
  transformer->MarkBlock(&marks);
  const at::Tensor marked = forward(600);
  EXPECT_EQ(recorder->replayed, before);
  ASSERT_NE(marks.Profile("forward"), nullptr);
  EXPECT_THAT(NamesOf(*marks.Profile("forward")), testing::Contains("self_attention"));
  EXPECT_TRUE(at::equal(forward(600), marked));
  EXPECT_EQ(recorder->replayed, before + 1) << "later ones are replayed again";
}

TEST_F(TransformerTest, OneTimestepForAllTokensIsAScalar) {
  const at::Tensor scalar = Predict(*transformer_, Latents(), Timestep(700), {Context()});
  const at::Tensor per_token =
      Predict(*transformer_, Latents(), at::full({1, kTokens}, 700, at::kLong), {Context()});
  EXPECT_TRUE(at::equal(scalar, per_token));
}

TEST_F(TransformerTest, EveryTokenMayHaveATimestepOfItsOwn) {
  at::Tensor timestep = at::full({1, kTokens}, 700, at::kFloat);
  const at::Tensor same = Predict(*transformer_, Latents(), timestep, {Context()});
  for (int64_t token = 0; token < kTokens; ++token) timestep[0][token] = 700 + 20.5 * token;
  const at::Tensor rising = Predict(*transformer_, Latents(), timestep, {Context()});
  EXPECT_GT(RelativeError(rising, same), 0.05);
  // The modulation goes by value, not by place: those who share one share a row.
  timestep[0].narrow(0, 0, kTokens).fill_(700);
  EXPECT_TRUE(at::equal(Predict(*transformer_, Latents(), timestep, {Context()}), same));
}

TEST_F(TransformerTest, BatchEntriesDoNotTouchEachOther) {
  const at::Tensor latents = Latents(2);
  const std::vector<at::Tensor> contexts{Context(9, 2), Context(30, 3)};
  at::Tensor timestep = Timestep(900, 2);
  timestep[1] = 100;
  const at::Tensor both = Predict(*transformer_, latents, timestep, contexts);
  for (int64_t i = 0; i < 2; ++i) {
    const at::Tensor alone =
        Predict(*transformer_, latents.narrow(0, i, 1), timestep.narrow(0, i, 1), {contexts[i]});
    EXPECT_LE(RelativeError(both.narrow(0, i, 1), alone), 1e-6) << i;
  }
}

// Whatever a forward keeps for the next one must not outlive a change of size or timesteps.
TEST_F(TransformerTest, ForwardsOfDifferentShapesDoNotTouchEachOther) {
  const auto text = transformer_->PrepareText({{Context()}}).value();
  const at::Tensor other = RandomTensor({1, 48, 2, 6, 4}, 5);  // as many tokens, in another order
  at::Tensor halves = at::full({1, kTokens}, 500, at::kFloat);
  halves[0].narrow(0, 0, kTokens / 2).zero_();
  // The same two timesteps, but where they lie differs: indices go by first appearance.
  at::Tensor thirds = at::full({1, kTokens}, 500, at::kFloat);
  thirds[0].narrow(0, 0, kTokens / 3).zero_();
  const auto forward = [&](const at::Tensor& latents, const at::Tensor& timestep) {
    return transformer_->Forward(latents, timestep, *text).value();
  };
  const auto fresh = [&](const at::Tensor& latents, const at::Tensor& timestep) {
    return Predict(*Load(), latents, timestep, {Context()});
  };
  for (const auto& [latents, timestep] :
       std::vector<std::pair<at::Tensor, at::Tensor>>{{Latents(), halves},
                                                      {Latents(), thirds},
                                                      {other, thirds},
                                                      {Latents(), Timestep(500)},
                                                      {Latents(), halves}}) {
    EXPECT_TRUE(at::equal(forward(latents, timestep), fresh(latents, timestep)));
  }
}

TEST_F(TransformerTest, LeavesItsInputsAlone) {
  const at::Tensor latents = Latents();
  const at::Tensor context = Context();
  const at::Tensor timestep = Timestep(321);
  Predict(*transformer_, latents, timestep, {context});
  EXPECT_TRUE(at::equal(latents, Latents()));
  EXPECT_TRUE(at::equal(context, Context()));
  EXPECT_TRUE(at::equal(timestep, Timestep(321)));
}

TEST_F(TransformerTest, TextIsPaddedWithZeroRows) {
  const at::Tensor padded = at::cat({Context(), at::zeros({503, 64})});
  EXPECT_TRUE(at::equal(Predict(*transformer_, Latents(), Timestep(700), {Context()}),
                        Predict(*transformer_, Latents(), Timestep(700), {padded})));
}

TEST_F(TransformerTest, PaddingOfTheTextIsAttendedTo) {
  const Checkpoint& checkpoint = GoldenCheckpoint("ti2v-5b/original");
  TransformerConfig config = checkpoint.transformer_config();
  config.text_len = 9;
  const auto unpadded = LoadWanTransformer(checkpoint.transformer(), config, {}).value();
  EXPECT_GT(RelativeError(Predict(*unpadded, Latents(), Timestep(700), {Context()}),
                          Predict(*transformer_, Latents(), Timestep(700), {Context()})),
            0.05);
}

TEST_F(TransformerTest, TextMayBeEmptyOrBf16) {
  const at::Tensor none = Predict(*transformer_, Latents(), Timestep(700), {at::zeros({0, 64})});
  EXPECT_TRUE(
      at::equal(none, Predict(*transformer_, Latents(), Timestep(700), {at::zeros({3, 64})})));
  const at::Tensor rounded = Context().to(at::kBFloat16);
  EXPECT_TRUE(
      at::equal(Predict(*transformer_, Latents(), Timestep(700), {rounded}),
                Predict(*transformer_, Latents(), Timestep(700), {rounded.to(at::kFloat)})));
}

TEST_F(TransformerTest, KeysAndValuesOfTheTextAreAllItKeeps) {
  const auto text = transformer_->PrepareText({{Context(), Context()}}).value();
  EXPECT_EQ(text->batch(), 2);
  // 3 blocks, 2 texts, 512 rows, keys and values of 64, fp32.
  EXPECT_EQ(text->Bytes(), 3 * 2 * 512 * 2 * 64 * 4);
}

TEST_F(TransformerTest, WeightBytesAreThoseOfTheCheckpoint) {
  int64_t bytes = 0;
  for (const TensorInfo& tensor : GoldenCheckpoint("ti2v-5b/original").transformer().Tensors()) {
    bytes += static_cast<int64_t>(tensor.bytes);
  }
  EXPECT_EQ(transformer_->WeightBytes(), bytes);
  EXPECT_LT(Load("ti2v-5b/original", 0, at::kBFloat16)->WeightBytes(), bytes);
}

// What is wrong, and what the message must name.
struct BadForward {
  const char* what;
  at::Tensor latents;
  at::Tensor timestep;
  std::string message;
};

TEST_F(TransformerTest, RefusesInputsOfAnotherShapeOrDtype) {
  const at::Tensor good = RandomTensor({1, 48, 2, 4, 6}, 1);
  const at::Tensor t = at::full({1}, 5, at::kFloat);
  const std::vector<BadForward> cases{
      {"no batch", good.squeeze(0), t, "[48, 2, 4, 6]"},
      {"channels", good.narrow(1, 0, 16), t, "48"},
      {"odd rows", good.narrow(3, 0, 3), t, "multiples of 1, 2 and 2"},
      {"odd columns", good.narrow(4, 0, 5), t, "[1, 48, 2, 4, 5]"},
      {"no frames", good.narrow(2, 0, 0), t, "[1, 48, 0, 4, 6]"},
      {"bf16 latents", good.to(at::kBFloat16), t, "BFloat16"},
      {"two latents, one text", at::cat({good, good}), at::full({2}, 5, at::kFloat), "1 texts"},
      {"two timesteps", good, at::full({2}, 5, at::kFloat), "[1, 12]"},
      {"scalar timestep", good, at::full({}, 5, at::kFloat), "[]"},
      {"timesteps of too few tokens", good, at::full({1, 11}, 5, at::kFloat), "[1, 11]"},
      {"timestep of int32", good, at::full({1}, 5, at::kInt), "Int"},
      {"infinite timestep", good,
       at::full({1}, std::numeric_limits<double>::infinity(), at::kFloat), "finite"}};
  const auto text = transformer_->PrepareText({{Context()}}).value();
  for (const BadForward& bad : cases) {
    const absl::Status status = transformer_->Forward(bad.latents, bad.timestep, *text).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << bad.what;
    EXPECT_THAT(std::string(status.message()), HasSubstr(bad.message)) << bad.what;
  }
}

TEST_F(TransformerTest, RefusesTextOfAnotherShape) {
  const auto prepare = [&](const std::vector<at::Tensor>& contexts) {
    return transformer_->PrepareText(contexts).status().code();
  };
  EXPECT_EQ(prepare({}), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(prepare({Context(513)}), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(prepare({RandomTensor({9, 63}, 1)}), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(prepare({RandomTensor({64}, 1)}), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(prepare({Context(), Context().to(at::kLong)}), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(prepare({Context(512)}), absl::StatusCode::kOk);
}

TEST_F(TransformerTest, RefusesTextOfAnotherModel) {
  const auto other = Load();
  const auto text = other->PrepareText({{Context()}}).value();
  const absl::Status status = transformer_->Forward(Latents(), Timestep(5), *text).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
}

TEST(LoadWanTransformer, NamesWhatTheCheckpointLacks) {
  const Checkpoint& checkpoint = GoldenCheckpoint("ti2v-5b/original");
  for (const std::string name : {"head.head.bias", "blocks.2.modulation", "patch_embedding.weight",
                                 "blocks.0.cross_attn.norm_k.weight"}) {
    InMemoryWeights weights = InMemoryWeights::CopyOf(checkpoint.transformer());
    weights.Remove(name);
    const absl::Status status =
        LoadWanTransformer(weights, checkpoint.transformer_config(), {}).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kNotFound) << name;
    EXPECT_THAT(std::string(status.message()), HasSubstr(name));
  }
}

TEST(LoadWanTransformer, NamesATensorOfAnotherShape) {
  const Checkpoint& checkpoint = GoldenCheckpoint("ti2v-5b/original");
  InMemoryWeights weights = InMemoryWeights::CopyOf(checkpoint.transformer());
  weights.Reshape("blocks.1.ffn.0.weight", {64, 160});
  const absl::Status status =
      LoadWanTransformer(weights, checkpoint.transformer_config(), {}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), AllOf(HasSubstr("blocks.1.ffn.0.weight"),
                                                   HasSubstr("[64, 160]"), HasSubstr("[160, 64]")));
}

TEST(LoadWanTransformer, RefusesWhatItDoesNotCompute) {
  const Checkpoint& checkpoint = GoldenCheckpoint("ti2v-5b/original");
  const auto code = [&](void (*change)(TransformerConfig&), at::ScalarType dtype = at::kFloat) {
    TransformerConfig config = checkpoint.transformer_config();
    change(config);
    return LoadWanTransformer(checkpoint.transformer(), config, {.dtype = dtype}).status().code();
  };
  EXPECT_EQ(code([](TransformerConfig& c) { c.qk_norm = false; }),
            absl::StatusCode::kUnimplemented);
  EXPECT_EQ(code([](TransformerConfig& c) { c.cross_attn_norm = false; }),
            absl::StatusCode::kUnimplemented);
  EXPECT_EQ(code([](TransformerConfig& c) { c.num_heads = 7; }),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code([](TransformerConfig&) {}, at::kHalf), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace wan
