// Where a run of the steps may begin again, with a transformer whose flow depends on what it kept.
#include "engine/pipeline/denoise_run.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "engine/api/errors.h"
#include "engine/device/torch_errors.h"
#include "tests/fakes/fake_device_monitor.h"

namespace wan {
namespace {

using testing::ElementsAre;

class KeepingText final : public TextConditioning {
 public:
  int64_t batch() const override { return 1; }
  int64_t Bytes() const override { return 0; }
  mutable std::optional<at::Tensor> kept;
};

// The flow of a step that computes is a part of its latents, and that of one that reuses adds what
// was kept. A text that has kept nothing cannot be reused.
class KeepingFlow final : public VideoTransformer {
 public:
  const TransformerConfig& config() const override { return config_; }
  absl::StatusOr<std::shared_ptr<const TextConditioning>> PrepareText(
      std::span<const at::Tensor> /*contexts*/, const WorkGate& /*gate*/) override {
    return std::make_shared<const KeepingText>();
  }
  absl::StatusOr<at::Tensor> Forward(const at::Tensor& latents, const at::Tensor& timestep,
                                     const TextConditioning& text, const WorkGate& /*gate*/,
                                     const ForwardPolicy& policy) override {
    steps.push_back(*timestep.const_data_ptr<double>());
    if (static_cast<int>(steps.size()) == fails_at) {
      throw StatusException(OutOfMemoryError("no room"));
    }
    if (static_cast<int>(steps.size()) == stops_at) stop.request_stop();
    const auto& own = static_cast<const KeepingText&>(text);
    if (policy.blocks == BlockUse::kReuse) {
      if (!own.kept.has_value()) return absl::InvalidArgumentError("nothing was kept");
      return *own.kept + latents * 0.25;
    }
    own.kept.reset();
    if (policy.blocks == BlockUse::kComputeAndKeep) own.kept = latents * 0.5;
    return latents * 0.75;
  }
  int64_t WeightBytes() const override { return 0; }

  std::vector<double> steps;  // timesteps of all forwards
  int fails_at = 0;           // number of the forward that finds no memory, from 1
  int stops_at = 0;           // number of the forward after which the job is to stop
  std::stop_source stop;

 private:
  TransformerConfig config_;
};

// Keeps every savepoint that it is offered.
class EverySavepoint final : public SavepointKeeper {
 public:
  absl::StatusOr<std::optional<Savepoint>> Load() override { return std::nullopt; }
  bool IsDue(bool /*last_step*/) override { return due; }
  bool WantsWhenStopped() override { return true; }
  void Keep(Savepoint savepoint) override { kept.push_back(std::move(savepoint)); }
  absl::Status Refuse(const std::string& /*reason*/) override { return absl::OkStatus(); }

  std::vector<int> Steps() const {
    std::vector<int> steps;
    for (const Savepoint& savepoint : kept) steps.push_back(savepoint.steps_done);
    return steps;
  }

  bool due = true;
  std::vector<Savepoint> kept;
};

class Resumptions final : public GenerationObserver {
 public:
  void OnResumed(int steps_done) override { at.push_back(steps_done); }
  std::vector<int> at;
};

class DenoiseRunTest : public testing::Test {
 protected:
  DenoiseRunTest() {
    plan_.request.solver = "euler";
    plan_.request.seed = 1;
    plan_.latent_shape = {1, 1, 1, 4};
    plan_.tokens = 4;
    plan_.guided = false;
    plan_.residency = {{ModelComponent::kTransformer, ResidencyPolicy::kResident}};
    // Steps 2 and 3 reuse what step 1 computes, and step 5 what step 4 does.
    for (const bool reuses : {false, false, true, true, false, true}) {
      const auto step = static_cast<double>(plan_.steps.size());
      plan_.steps.push_back({1000 - 100 * step, ExpertRole::kOnly, 1, reuses});
      plan_.sigmas.push_back(static_cast<float>(1 - step / 6));
    }
    plan_.sigmas.push_back(0);
    Expert& expert = model_.experts.emplace_back();
    auto transformer = std::make_unique<KeepingFlow>();
    transformer_ = transformer.get();
    expert.transformer = std::move(transformer);
    expert.weights = std::make_shared<ComponentWeights>(MakeWeightMover(at::kCPU),
                                                        ComponentWeights::Home::kDevice);
    expert.weights->Add(at::ones({1}, at::kFloat));
    expert.weights->FinishBuilding();
  }

  DenoiseProgress Noise() const { return {.latents = at::full({1, 1, 1, 4}, 2.0f)}; }

  absl::StatusOr<at::Tensor> Run(const DenoiseProgress& start) {
    const DenoiseInputs inputs{plan_, at::ones({1, 4}), {}, {}, {}};
    ExpertSwitch experts(plan_, model_, recorder_);
    FiniteWatch finite(plan_);
    const WorkGate gate(transformer_->stop.get_token());
    return RunDenoising(inputs, start,
                        {.experts = experts,
                         .recorder = recorder_,
                         .gate = gate,
                         .finite = finite,
                         .observer = resumed_,
                         .savepoints = &savepoints_,
                         .on_step = [](const DenoiseState&) { return absl::OkStatus(); }});
  }

  at::Tensor Uninterrupted() {
    const absl::StatusOr<at::Tensor> latents = Run(Noise());
    EXPECT_TRUE(latents.ok()) << latents.status();
    transformer_->steps.clear();
    return *latents;
  }

  PipelineModel model_;
  KeepingFlow* transformer_ = nullptr;
  GenerationPlan plan_;
  fakes::FakeDeviceMonitor monitor_;
  Recorder recorder_{SystemClock(), monitor_, {}};
  EverySavepoint savepoints_;
  Resumptions resumed_;
};

TEST_F(DenoiseRunTest, NoSavepointStandsBeforeAStepThatReuses) {
  const at::Tensor latents = Uninterrupted();
  EXPECT_THAT(savepoints_.Steps(), ElementsAre(1, 4, 6));
  for (const Savepoint& savepoint : savepoints_.kept) {
    const auto progress = FromSavepoint(savepoint, plan_);
    ASSERT_TRUE(progress.ok()) << progress.status();
    const auto continued = Run(*progress);
    ASSERT_TRUE(continued.ok()) << continued.status();
    EXPECT_TRUE(at::equal(*continued, latents)) << savepoint.steps_done;
  }
}

// lcm draws noise in each step; the savepoint has none of it.
TEST_F(DenoiseRunTest, ARunThatGoesOnAddsTheNoiseOfItsSteps) {
  plan_.request.solver = "lcm";
  plan_.sigmas[0] = 0.9f;
  const at::Tensor latents = Uninterrupted();
  for (const Savepoint& savepoint : std::exchange(savepoints_.kept, {})) {
    const auto continued = Run(*FromSavepoint(savepoint, plan_));
    ASSERT_TRUE(continued.ok()) << continued.status();
    EXPECT_TRUE(at::equal(*continued, latents)) << savepoint.steps_done;
  }
  plan_.request.seed = 2;
  EXPECT_FALSE(at::equal(Uninterrupted(), latents));
}

TEST_F(DenoiseRunTest, ASavepointBeforeAStepThatReusesIsRefused) {
  Savepoint savepoint = ToSavepoint({2, at::ones({1, 1, 1, 4}), {}}, plan_);
  EXPECT_EQ(FromSavepoint(savepoint, plan_).status().message(),
            "the savepoint has 2 steps; the next one reuses what the last has computed");
  plan_.steps[2].reuses_blocks = false;
  EXPECT_TRUE(FromSavepoint(savepoint, plan_).ok());
}

TEST_F(DenoiseRunTest, MemoryThatRunsOutRepeatsWhatTheStepNeeds) {
  const at::Tensor latents = Uninterrupted();
  transformer_->fails_at = 4;
  const auto repeated = Run(Noise());
  ASSERT_TRUE(repeated.ok()) << repeated.status();
  EXPECT_THAT(transformer_->steps, ElementsAre(1000, 900, 800, 700, 900, 800, 700, 600, 500));
  EXPECT_THAT(resumed_.at, ElementsAre(1));
  EXPECT_TRUE(at::equal(*repeated, latents));
}

TEST_F(DenoiseRunTest, AStopKeepsTheStepsWithWhichAnotherAttemptCanBegin) {
  const at::Tensor latents = Uninterrupted();
  savepoints_.kept.clear();
  savepoints_.due = false;
  transformer_->stops_at = 3;
  EXPECT_EQ(Run(Noise()).status().code(), absl::StatusCode::kCancelled);
  ASSERT_THAT(savepoints_.Steps(), ElementsAre(1));
  transformer_->stop = std::stop_source();
  transformer_->stops_at = 0;
  const auto continued = Run(*FromSavepoint(savepoints_.kept.front(), plan_));
  ASSERT_TRUE(continued.ok()) << continued.status();
  EXPECT_TRUE(at::equal(*continued, latents));
}

}  // namespace
}  // namespace wan
