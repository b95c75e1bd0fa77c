// A stop request ends every component within a block, counted in blocks: what a block takes on a
// card is measured there (scripts/gpu/check_stop).
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <stop_token>
#include <utility>
#include <vector>

#include "engine/models/wan/transformer.h"
#include "engine/models/wan/umt5.h"
#include "engine/models/wan/vae.h"
#include "tests/engine/golden_dit.h"
#include "tests/engine/golden_tensors.h"

namespace wan {
namespace {

// Counts the groups of weights that are fetched, which is one a block where weights are streamed,
// and asks for a stop with the group number `stop_at`.
class CountingMover final : public WeightMover {
 public:
  explicit CountingMover(int& fetched) : fetched_(fetched) {}

  bool DeviceIsHost() const override { return true; }
  at::Tensor AllocateHost(int64_t bytes) override { return mover_->AllocateHost(bytes); }
  at::Tensor AllocateDevice(int64_t bytes) override { return mover_->AllocateDevice(bytes); }
  Mark MarkCompute() override { return nullptr; }
  Mark CopyToDevice(const at::Tensor& host, const at::Tensor& device, const Mark& after) override {
    ++fetched_;
    return mover_->CopyToDevice(host, device, after);
  }
  void ComputeAfter(const Mark&) override {}
  void WaitFor(const Mark&) noexcept override {}
  void CopyToHost(const at::Tensor& device, const at::Tensor& host) override {
    mover_->CopyToHost(device, host);
  }

 private:
  int& fetched_;
  const std::unique_ptr<WeightMover> mover_ = MakeWeightMover(at::kCPU);
};

// Asks for a stop at its n-th mark. A gate marks every fourth small piece.
class StoppingQueue final : public WorkQueue {
 public:
  StoppingQueue(int marks, std::stop_source stop) : left_(marks), stop_(std::move(stop)) {}

  Mark MarkEnd() override {
    if (--left_ == 0) stop_.request_stop();
    return nullptr;
  }
  void Await(const Mark&) override {}

 private:
  int left_;
  std::stop_source stop_;
};

class StopTest : public testing::Test {
 protected:
  std::shared_ptr<ComponentWeights> Streamed() {
    return std::make_shared<ComponentWeights>(std::make_unique<CountingMover>(fetched_),
                                              ComponentWeights::Home::kHost);
  }

  WorkGate StopAtMark(int mark) {
    return WorkGate(std::make_shared<StoppingQueue>(mark, stop_), stop_.get_token());
  }

  const Checkpoint& checkpoint_ = GoldenCheckpoint("ti2v-5b/original");
  std::stop_source stop_;
  int fetched_ = 0;
};

TEST_F(StopTest, TheTransformerComputesNoSecondBlock) {
  const auto weights = Streamed();
  const auto transformer =
      LoadWanTransformer(checkpoint_.transformer(0), checkpoint_.transformer_config(0),
                         {.weights = weights})
          .value();
  const int blocks = static_cast<int>(transformer->config().num_layers);
  ASSERT_GE(blocks, 2);
  weights->Stream();
  const TransformerConfig& config = transformer->config();
  const std::vector<at::Tensor> contexts = {at::zeros({3, config.text_dim})};
  const auto text = transformer->PrepareText(contexts).value();
  const at::Tensor latents = at::zeros({1, config.in_channels, 1, 4, 4});
  const at::Tensor timestep = at::zeros({1});
  fetched_ = 0;
  ASSERT_TRUE(transformer->Forward(latents, timestep, *text).ok());
  const int whole = fetched_;

  stop_.request_stop();
  fetched_ = 0;
  EXPECT_EQ(transformer->Forward(latents, timestep, *text, stop_.get_token()).status().code(),
            absl::StatusCode::kCancelled);
  // The first block, and the second that is fetched meanwhile.
  EXPECT_LE(fetched_, 2);
  EXPECT_LT(fetched_, whole);
  fetched_ = 0;
  EXPECT_EQ(transformer->PrepareText(contexts, stop_.get_token()).status().code(),
            absl::StatusCode::kCancelled);
  EXPECT_LE(fetched_, 2);
}

// The attention of one block over a very long video takes longer than a stop may. Here the limits
// are small instead.
TEST_F(StopTest, ALongAttentionIsPassedBetweenItsParts) {
  const auto load = [&](const std::optional<AttentionLimits>& limits) {
    return LoadWanTransformer(checkpoint_.transformer(0), checkpoint_.transformer_config(0),
                              {.attention_limits = limits})
        .value();
  };
  const auto whole = load(std::nullopt);
  const auto in_parts = load(AttentionLimits{.whole = 1, .part = 1});
  const TransformerConfig& config = whole->config();
  const std::vector<at::Tensor> contexts = {at::zeros({3, config.text_dim})};
  const at::Tensor timestep = at::zeros({1});
  // 600 tokens: three parts.
  const at::Tensor latents = at::ones({1, config.in_channels, 6, 20, 20});
  const auto forward = [&](VideoTransformer& transformer, const WorkGate& gate) {
    const auto text = transformer.PrepareText(contexts).value();
    return transformer.Forward(latents, timestep, *text, gate);
  };
  const at::Tensor expected = forward(*whole, {}).value();
  EXPECT_LE(RelativeError(forward(*in_parts, {}).value(), expected), 1e-6);
  // A gate marks every fourth small piece. A block has three parts, the rest of its self-attention
  // and its feed-forward, so that the first mark is still in the first block.
  EXPECT_EQ(forward(*in_parts, StopAtMark(1)).status().code(), absl::StatusCode::kCancelled);
  const int blocks = static_cast<int>(config.num_layers);
  stop_ = {};
  EXPECT_TRUE(forward(*whole, StopAtMark(blocks / 4 + 1)).ok()) << "one passage a block";
  stop_ = {};
  EXPECT_EQ(forward(*in_parts, StopAtMark(5 * blocks / 4)).status().code(),
            absl::StatusCode::kCancelled)
      << "five passages a block";
}

TEST_F(StopTest, TheTextEncoderComputesNoSecondLayer) {
  const auto weights = Streamed();
  const auto encoder =
      LoadUmt5(checkpoint_.text_encoder(), checkpoint_.text_encoder_config(), {.weights = weights})
          .value();
  ASSERT_GE(encoder->config().num_layers, 2);
  weights->Stream();
  const std::vector<int64_t> ids = {5, 6, 1};
  stop_.request_stop();
  fetched_ = 0;
  EXPECT_EQ(encoder->Encode(ids, stop_.get_token()).status().code(), absl::StatusCode::kCancelled);
  EXPECT_LE(fetched_, 2);
}

TEST_F(StopTest, TheAutoencoderEndsInsideOfAChunk) {
  for (const char* layout : {"ti2v-5b/original", "t2v-a14b/original"}) {
    SCOPED_TRACE(layout);
    const Checkpoint& checkpoint = GoldenCheckpoint(layout);
    const auto vae = LoadWanVae(checkpoint.vae(), checkpoint.vae_config(), {}).value();
    int chunks = 0;
    stop_ = {};
    const absl::Status decoded = vae->Decode(
        at::zeros({vae->config().z_dim, 3, 2, 2}),
        [&](const at::Tensor&) {
          ++chunks;
          return absl::OkStatus();
        },
        StopAtMark(1));
    EXPECT_EQ(decoded.code(), absl::StatusCode::kCancelled) << decoded;
    EXPECT_EQ(chunks, 0) << "the first chunk has more than four layers";
    stop_ = {};
    const int64_t side = 2 * vae->config().stride_spatial;
    EXPECT_EQ(vae->Encode(at::zeros({3, 1, side, side}), StopAtMark(1)).status().code(),
              absl::StatusCode::kCancelled);
  }
}

// Counts what is read of a checkpoint after the request.
class StoppingSource final : public WeightSource {
 public:
  StoppingSource(const WeightSource& source, std::stop_source stop)
      : source_(source), stop_(std::move(stop)) {}

  const std::vector<TensorInfo>& Tensors() const override { return source_.Tensors(); }
  const TensorInfo* Find(std::string_view name) const override { return source_.Find(name); }
  absl::StatusOr<TensorBytes> Read(const TensorInfo& tensor) const override {
    if (++reads == 5) stop_.request_stop();
    return source_.Read(tensor);
  }

  mutable int reads = 0;

 private:
  const WeightSource& source_;
  mutable std::stop_source stop_;
};

TEST_F(StopTest, LoadingReadsNoFurtherTensor) {
  const auto expect_stopped = [&](const WeightSource& whole, const auto& load) {
    stop_ = {};
    const StoppingSource source(whole, stop_);
    const absl::Status status = load(source);
    EXPECT_EQ(status.code(), absl::StatusCode::kCancelled) << status;
    EXPECT_EQ(source.reads, 5);
  };
  expect_stopped(checkpoint_.transformer(0), [&](const WeightSource& source) {
    return LoadWanTransformer(source, checkpoint_.transformer_config(0),
                              {.weights = Streamed(), .stop = stop_.get_token()})
        .status();
  });
  expect_stopped(checkpoint_.text_encoder(), [&](const WeightSource& source) {
    return LoadUmt5(source, checkpoint_.text_encoder_config(), {.stop = stop_.get_token()})
        .status();
  });
  expect_stopped(checkpoint_.vae(), [&](const WeightSource& source) {
    return LoadWanVae(source, checkpoint_.vae_config(), {.stop = stop_.get_token()}).status();
  });
}

}  // namespace
}  // namespace wan
