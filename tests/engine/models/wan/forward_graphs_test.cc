#include "engine/models/wan/forward_graphs.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <c10/util/Exception.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <vector>

namespace wan {
namespace {

// "Records" by keeping the work, whose addresses are those of the tensors that it captures.
class FakeRecorder final : public DeviceGraphRecorder {
 public:
  std::unique_ptr<DeviceGraph> Record(const std::function<void()>& work) override {
    TORCH_CHECK(!refuses, "this device records nothing");
    ++recorded;
    work();
    return std::make_unique<Graph>(*this);
  }

  int recorded = 0;
  int replayed = 0;
  int alive = 0;
  bool refuses = false;

 private:
  class Graph final : public DeviceGraph {
   public:
    explicit Graph(FakeRecorder& recorder) : recorder_(recorder) { ++recorder_.alive; }
    ~Graph() override { --recorder_.alive; }
    void Replay() override { ++recorder_.replayed; }

   private:
    FakeRecorder& recorder_;
  };
};

ForwardCall CallOf(int64_t frames, int64_t batch = 1) {
  ForwardCall call{.shape = {batch, {frames, 2, 2}, {{500.0}, {}}}, .text_id = 1, .bytes = 1000};
  return call;
}

class ForwardGraphsTest : public testing::Test {
 protected:
  // The sum of what a forward reads; `computed_` counts how often it is computed.
  at::Tensor Run(const ForwardCall& call, double latents, double text = 0) {
    const auto one = [](double value) { return at::full({4}, value, at::kFloat); };
    const ForwardInputs inputs{one(latents), one(1), one(text), one(2), {}};
    return graphs_.Run(call, inputs, [&](const ForwardInputs& read) {
      ++computed_;
      last_ = read;
      return read.latents + read.sinusoids + read.text + read.rotary;
    });
  }

  const std::shared_ptr<FakeRecorder> recorder_ = std::make_shared<FakeRecorder>();
  ForwardGraphs graphs_{recorder_};
  ForwardInputs last_;  // of the last computation, and what the recorded one reads
  int computed_ = 0;
};

TEST_F(ForwardGraphsTest, TheSecondForwardOfAShapeIsRecordedAndLaterOnesAreReplayed) {
  for (int i = 0; i < 5; ++i) Run(CallOf(1), i);
  EXPECT_EQ(computed_, 2);
  EXPECT_EQ(recorder_->recorded, 1);
  EXPECT_EQ(recorder_->replayed, 4);
  EXPECT_EQ(graphs_.size(), 1u);
}

TEST_F(ForwardGraphsTest, AGraphReadsTheInputsOfEveryForward) {
  Run(CallOf(1), 1);
  Run(CallOf(1), 2);
  ForwardCall call = CallOf(1);
  Run(call, 30, 5);
  EXPECT_EQ(last_.latents[0].item<float>(), 30);
  EXPECT_EQ(last_.text[0].item<float>(), 0) << "a text that has not changed is not copied again";
  call.text_id = 2;
  Run(call, 31, 5);
  EXPECT_EQ(last_.text[0].item<float>(), 5);
}

TEST_F(ForwardGraphsTest, AResultIsNotOverwrittenByTheNextForward) {
  Run(CallOf(1), 1);
  const at::Tensor recorded = Run(CallOf(1), 2);
  const at::Tensor copy = recorded.clone();
  const at::Tensor next = Run(CallOf(1), 3);
  EXPECT_NE(next.const_data_ptr(), recorded.const_data_ptr());
  EXPECT_TRUE(at::equal(recorded, copy));
}

// The kernels of a graph would read memory that belongs to somebody else by now.
TEST_F(ForwardGraphsTest, NoGraphIsReplayedAfterWeightsHaveMoved) {
  ForwardCall call = CallOf(1);
  for (int i = 0; i < 3; ++i) Run(call, i);
  ASSERT_EQ(recorder_->replayed, 2);
  call.placement = 1;
  Run(call, 4);
  EXPECT_EQ(recorder_->replayed, 2);
  EXPECT_EQ(recorder_->alive, 0);
  Run(call, 5);
  EXPECT_EQ(recorder_->recorded, 2);
}

TEST_F(ForwardGraphsTest, WhatChangesTheKernelsIsAnotherShape) {
  std::vector<ForwardCall> calls{CallOf(1), CallOf(2), CallOf(1, 2), CallOf(1), CallOf(1)};
  calls[3].shape.rows = {{0.0, 500.0}, {0, 1, 1, 1}};
  calls[4].shape.rows = {{0.0, 500.0}, {0, 0, 1, 1}};
  for (const ForwardCall& call : calls) Run(call, 1);
  EXPECT_EQ(computed_, 5);
  calls[0].shape.rows.timesteps = {400.0};
  Run(calls[0], 1);
  EXPECT_EQ(recorder_->recorded, 1) << "another timestep is an input and no other shape";
}

TEST_F(ForwardGraphsTest, TheOneThatWasNotUsedForTheLongestTimeGoes) {
  const auto most = static_cast<int64_t>(ForwardGraphs::kMostGraphs);
  for (int64_t frames = 1; frames <= most; ++frames) {
    Run(CallOf(frames), 1);
    Run(CallOf(frames), 1);
  }
  Run(CallOf(1), 1);  // so that the second one is the oldest
  Run(CallOf(most + 1), 1);
  Run(CallOf(most + 1), 1);
  EXPECT_EQ(graphs_.size(), ForwardGraphs::kMostGraphs);
  const int recorded = recorder_->recorded;
  Run(CallOf(1), 1);
  EXPECT_EQ(recorder_->recorded, recorded);
  computed_ = 0;
  Run(CallOf(2), 1);
  EXPECT_EQ(computed_, 1) << "it is new again";
}

TEST_F(ForwardGraphsTest, TheirMemoryIsBounded) {
  ForwardCall large = CallOf(1);
  large.bytes = ForwardGraphs::kMostBytes + 1;
  Run(large, 1);
  Run(large, 1);
  EXPECT_EQ(graphs_.size(), 1u) << "the latest stays, whatever it takes";
  EXPECT_GT(graphs_.Bytes(), ForwardGraphs::kMostBytes);
  Run(CallOf(2), 1);
  EXPECT_EQ(graphs_.size(), 0u);
  graphs_.Release();
  EXPECT_EQ(graphs_.Bytes(), 0);
}

TEST_F(ForwardGraphsTest, BytesAreThoseOfTheTensors) {
  Run(CallOf(1), 1);
  EXPECT_EQ(graphs_.Bytes(), 0) << "nothing is recorded yet";
  Run(CallOf(1), 1);
  // Latents, sinusoids, text, rotary and the result, and what the kernels compute in.
  EXPECT_EQ(graphs_.Bytes(), 5 * 16 + 1000);
}

TEST_F(ForwardGraphsTest, WhatTheDeviceDoesNotRecordIsComputed) {
  recorder_->refuses = true;
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(Run(CallOf(1), 10 + i)[0].item<float>(), 13.0f + static_cast<float>(i));
  }
  EXPECT_EQ(computed_, 3);
  EXPECT_EQ(graphs_.size(), 0u);
}

}  // namespace
}  // namespace wan
