#include "engine/models/group_transformer.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <memory>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "absl/synchronization/notification.h"
#include "engine/group/thread_communicator.h"
#include "engine/models/wan/transformer.h"
#include "tests/engine/golden_dit.h"
#include "tests/engine/golden_tensors.h"
#include "tests/engine/random_tensor.h"

namespace wan {
namespace {

using testing::HasSubstr;

constexpr double kTolerance = 1e-6;

std::unique_ptr<RankTransformer> LoadRank(const std::string& checkpoint = "ti2v-5b", int expert = 0,
                                          const TransformerOptions& options = {}) {
  const Checkpoint& golden = GoldenCheckpoint(checkpoint + "/original");
  return LoadWanTransformer(golden.transformer(expert), golden.transformer_config(expert), options)
      .value();
}

std::unique_ptr<VideoTransformer> MakeGroup(
    std::vector<std::unique_ptr<RankTransformer>> transformers) {
  std::vector<GroupRank> ranks;
  for (auto& transformer : transformers) ranks.push_back({at::kCPU, std::move(transformer)});
  return MakeGroupTransformer(std::move(ranks), &MakeThreadGroup);
}

std::unique_ptr<VideoTransformer> LoadGroup(int ranks, const std::string& checkpoint = "ti2v-5b",
                                            int expert = 0,
                                            const TransformerOptions& options = {}) {
  std::vector<std::unique_ptr<RankTransformer>> loaded;
  for (int rank = 0; rank < ranks; ++rank) loaded.push_back(LoadRank(checkpoint, expert, options));
  return MakeGroup(std::move(loaded));
}

at::Tensor Predict(VideoTransformer& transformer, const at::Tensor& latents,
                   const at::Tensor& timestep, const std::vector<at::Tensor>& contexts) {
  const auto text = transformer.PrepareText(contexts).value();
  return transformer.Forward(latents, timestep, *text).value();
}

TEST(GroupTransformerTest, GoldenCasesAreThoseOfOneRank) {
  for (const GoldenDitCase& golden : LoadGoldenDitCases()) {
    const at::Tensor alone = Predict(*LoadRank(golden.checkpoint, golden.expert), golden.latents,
                                     golden.timestep, golden.contexts);
    for (const int ranks : {2, 3, 4}) {
      const auto group = LoadGroup(ranks, golden.checkpoint, golden.expert);
      const at::Tensor flow = Predict(*group, golden.latents, golden.timestep, golden.contexts);
      const auto overlapping =
          LoadGroup(ranks, golden.checkpoint, golden.expert, {.fewest_overlapped_tokens = 1});
      EXPECT_TRUE(
          at::equal(Predict(*overlapping, golden.latents, golden.timestep, golden.contexts), flow))
          << golden.id << ", heads exchanged in pieces";
      const double error = RelativeError(flow, alone);
      std::printf("golden: %s %d ranks relative error %.1e\n", golden.id.c_str(), ranks, error);
      // Products of a few rows take other kernels of the matrix library.
      const bool few_rows = golden.latents[0][0].numel() / 4 <= 8;
      EXPECT_LE(error, few_rows ? 2 * kTolerance : kTolerance);
      EXPECT_LE(RelativeError(flow, golden.output), 1e-5);
    }
  }
}

// Of the small ti2v-5b: 3 x 3 x 3 tokens, which neither two nor four ranks divide evenly.
class SmallGroupTest : public testing::Test {
 protected:
  static at::Tensor Latents(uint64_t seed = 1) { return RandomTensor({1, 48, 3, 6, 6}, seed); }
  static at::Tensor Context(uint64_t seed = 2) { return RandomTensor({9, 64}, seed); }
  static at::Tensor Timestep(int64_t batch = 1) { return at::full({batch}, 700, at::kFloat); }
};

TEST_F(SmallGroupTest, UnevenSharesAreExact) {
  const at::Tensor alone = Predict(*LoadRank(), Latents(), Timestep(), {Context()});
  // The first frame has a timestep of its own.
  at::Tensor per_token = at::full({1, 27}, 700, at::kFloat);
  per_token.narrow(1, 0, 9).zero_();
  const at::Tensor image = Predict(*LoadRank(), Latents(), per_token, {Context()});
  for (const int ranks : {2, 3, 4}) {
    const auto group = LoadGroup(ranks);
    EXPECT_LE(RelativeError(Predict(*group, Latents(), Timestep(), {Context()}), alone), kTolerance)
        << ranks;
    EXPECT_LE(RelativeError(Predict(*group, Latents(), per_token, {Context()}), image), kTolerance)
        << ranks;
  }
}

TEST_F(SmallGroupTest, TwoRanksDivideTheGuidanceAndKeepEveryBit) {
  const auto rank = LoadRank();
  const at::Tensor prompt = Predict(*rank, Latents(), Timestep(), {Context(2)});
  const at::Tensor negative = Predict(*rank, Latents(), Timestep(), {Context(3)});
  const auto group = LoadGroup(2);
  const at::Tensor both =
      Predict(*group, Latents().expand({2, -1, -1, -1, -1}), Timestep(2), {Context(2), Context(3)});
  EXPECT_TRUE(at::equal(both, at::cat({prompt, negative})));
}

TEST_F(SmallGroupTest, FourRanksDivideGuidanceAndTokens) {
  const auto rank = LoadRank();
  const at::Tensor prompt = Predict(*rank, Latents(), Timestep(), {Context(2)});
  const at::Tensor negative = Predict(*rank, Latents(), Timestep(), {Context(3)});
  const auto group = LoadGroup(4);
  const at::Tensor both =
      Predict(*group, Latents().expand({2, -1, -1, -1, -1}), Timestep(2), {Context(2), Context(3)});
  EXPECT_LE(RelativeError(both, at::cat({prompt, negative})), kTolerance);
  // A step without guidance afterwards: all four divide one video.
  EXPECT_LE(RelativeError(Predict(*group, Latents(), Timestep(), {Context(2)}), prompt),
            kTolerance);
}

TEST_F(SmallGroupTest, CountsWhatEachRankSends) {
  std::vector<std::shared_ptr<ExchangeMeter>> meters;
  std::vector<GroupRank> ranks;
  for (int rank = 0; rank < 2; ++rank) {
    meters.push_back(std::make_shared<ExchangeMeter>());
    ranks.push_back({at::kCPU, LoadRank(), meters.back()});
  }
  const auto group = MakeGroupTransformer(std::move(ranks), &MakeThreadGroup);
  const uint64_t video = Latents().nbytes();
  Predict(*group, Latents().expand({2, -1, -1, -1, -1}), Timestep(2), {Context(2), Context(3)});
  EXPECT_EQ(meters[0]->Read().sent_bytes, video) << "the latents of the other half";
  EXPECT_EQ(meters[1]->Read().sent_bytes, video) << "its flow";
  EXPECT_GT(meters[0]->Read().waited_seconds, 0);
  EXPECT_EQ(meters[1]->Read().waited_seconds, 0) << "a half waits for nobody";

  // 14 and 13 tokens, and half of the heads each: queries, keys and values of the other's heads,
  // the results of its own heads for the other's tokens, and in the end its rows of the flow.
  Predict(*group, Latents(), Timestep(), {Context()});
  const TransformerConfig& config = group->config();
  const uint64_t half = static_cast<uint64_t>(config.dim) / 2;
  const auto blocks = static_cast<uint64_t>(config.num_layers);
  const uint64_t row = video / 27;
  EXPECT_EQ(meters[0]->Read().sent_bytes,
            2 * video + blocks * (14 * 3 + 13) * half * sizeof(float) + 14 * row);
  EXPECT_EQ(meters[1]->Read().sent_bytes,
            video + blocks * (13 * 3 + 14) * half * sizeof(float) + 13 * row);
  EXPECT_GT(meters[1]->Read().waited_seconds, 0);
}

// A rank that has no heads of a piece, or none at all, still takes part in its exchange.
TEST_F(SmallGroupTest, PiecesOfAFewHeadsMayBeEmpty) {
  const at::Tensor whole = Predict(*LoadGroup(4), Latents(), Timestep(), {Context()});
  for (const int ranks : {4, 7}) {
    const auto group = LoadGroup(ranks, "ti2v-5b", 0, {.fewest_overlapped_tokens = 1});
    EXPECT_LE(RelativeError(Predict(*group, Latents(), Timestep(), {Context()}), whole), kTolerance)
        << ranks;
  }
}

TEST_F(SmallGroupTest, AVideoOfOneTokenIsComputedByOneRank) {
  const at::Tensor latents = RandomTensor({1, 48, 1, 2, 2}, 5);
  const at::Tensor alone = Predict(*LoadRank(), latents, Timestep(), {Context()});
  EXPECT_TRUE(at::equal(Predict(*LoadGroup(3), latents, Timestep(), {Context()}), alone));
}

TEST_F(SmallGroupTest, AStopEndsAllRanksAndTheNextForwardIsWhole) {
  const auto group = LoadGroup(3);
  const auto text = group->PrepareText(std::vector{Context()}).value();
  const at::Tensor before = group->Forward(Latents(), Timestep(), *text).value();
  std::stop_source stop;
  stop.request_stop();
  EXPECT_TRUE(
      absl::IsCancelled(group->Forward(Latents(), Timestep(), *text, stop.get_token()).status()));
  EXPECT_TRUE(at::equal(group->Forward(Latents(), Timestep(), *text).value(), before));
}

TEST_F(SmallGroupTest, NamesWhatDoesNotFit) {
  const auto group = LoadGroup(2);
  const auto text = group->PrepareText(std::vector{Context()}).value();
  EXPECT_TRUE(absl::IsInvalidArgument(
      group->Forward(RandomTensor({1, 47, 3, 6, 6}, 1), Timestep(), *text).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(
      group->Forward(RandomTensor({48, 3, 6, 6}, 1), Timestep(), *text).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(
      group->Forward(Latents().expand({2, -1, -1, -1, -1}), Timestep(2), *text).status()));
  EXPECT_TRUE(
      absl::IsInvalidArgument(LoadGroup(2)->Forward(Latents(), Timestep(), *text).status()));
}

// A rank that throws once, in its forward.
class ThrowsOnce final : public RankTransformer {
 public:
  explicit ThrowsOnce(std::unique_ptr<RankTransformer> inner) : inner_(std::move(inner)) {}

  const TransformerConfig& config() const override { return inner_->config(); }
  absl::StatusOr<std::shared_ptr<const TextConditioning>> PrepareText(
      std::span<const at::Tensor> contexts, const WorkGate& gate) override {
    return inner_->PrepareText(contexts, gate);
  }
  absl::StatusOr<at::Tensor> Forward(const at::Tensor& latents, const at::Tensor& timestep,
                                     const TextConditioning& text, const WorkGate& gate,
                                     const ForwardPolicy& policy) override {
    if (std::exchange(throws_, false)) throw std::runtime_error("this rank has no memory");
    return inner_->Forward(latents, timestep, text, gate, policy);
  }
  int64_t WeightBytes() const override { return inner_->WeightBytes(); }
  void ShareTokens(Communicator* peers) override { inner_->ShareTokens(peers); }

 private:
  const std::unique_ptr<RankTransformer> inner_;
  bool throws_ = true;
};

// A rank whose forward ends with nothing but a stop.
class WaitsForStop final : public RankTransformer {
 public:
  explicit WaitsForStop(std::unique_ptr<RankTransformer> inner) : inner_(std::move(inner)) {}

  const TransformerConfig& config() const override { return inner_->config(); }
  absl::StatusOr<std::shared_ptr<const TextConditioning>> PrepareText(
      std::span<const at::Tensor> contexts, const WorkGate& gate) override {
    return inner_->PrepareText(contexts, gate);
  }
  absl::StatusOr<at::Tensor> Forward(const at::Tensor&, const at::Tensor&, const TextConditioning&,
                                     const WorkGate& gate, const ForwardPolicy&) override {
    absl::Notification stopped;
    const std::stop_callback on_stop(gate.stop_token(), [&] { stopped.Notify(); });
    stopped.WaitForNotification();
    return gate.Pass();
  }
  int64_t WeightBytes() const override { return inner_->WeightBytes(); }
  void ShareTokens(Communicator* peers) override { inner_->ShareTokens(peers); }

 private:
  const std::unique_ptr<RankTransformer> inner_;
};

TEST_F(SmallGroupTest, AHalfThatFailsStopsTheOther) {
  std::vector<std::unique_ptr<RankTransformer>> ranks;
  ranks.push_back(std::make_unique<WaitsForStop>(LoadRank()));
  ranks.push_back(std::make_unique<ThrowsOnce>(LoadRank()));
  const auto group = MakeGroup(std::move(ranks));
  const auto text = group->PrepareText(std::vector{Context(2), Context(3)}).value();
  const absl::Status failed =
      group->Forward(Latents().expand({2, -1, -1, -1, -1}), Timestep(2), *text).status();
  EXPECT_THAT(failed.message(), HasSubstr("this rank has no memory"));
}

TEST_F(SmallGroupTest, ARankThatThrowsEndsTheForwardOnAll) {
  std::vector<std::unique_ptr<RankTransformer>> ranks;
  ranks.push_back(LoadRank());
  ranks.push_back(std::make_unique<ThrowsOnce>(LoadRank()));
  ranks.push_back(LoadRank());
  const auto group = MakeGroup(std::move(ranks));
  const auto text = group->PrepareText(std::vector{Context()}).value();
  const absl::Status failed = group->Forward(Latents(), Timestep(), *text).status();
  EXPECT_TRUE(absl::IsInternal(failed)) << failed;
  EXPECT_THAT(failed.message(),
              HasSubstr("computing on cpu (rank 1 of 3): this rank has no memory"));
  const at::Tensor alone = Predict(*LoadRank(), Latents(), Timestep(), {Context()});
  EXPECT_LE(RelativeError(group->Forward(Latents(), Timestep(), *text).value(), alone), kTolerance);
}

}  // namespace
}  // namespace wan
