// The loop itself, with a transformer whose flow is known.
#include "engine/pipeline/denoise_loop.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "engine/api/errors.h"
#include "engine/schedulers/seeded_noise.h"
#include "tests/fakes/fake_clock.h"
#include "tests/fakes/fake_device_monitor.h"

namespace wan {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

class TextValue final : public TextConditioning {
 public:
  explicit TextValue(std::vector<double> values) : values(std::move(values)) {}
  int64_t batch() const override { return static_cast<int64_t>(values.size()); }
  int64_t Bytes() const override { return 0; }
  std::optional<double> ChangeRatio() const override {
    if (kept < 2) return std::nullopt;
    return values.front() + kept;
  }
  const std::vector<double> values;
  mutable int kept = 0;  // forwards that kept
};

// The flow of a batch entry is the first number of its text, everywhere, and what is the expert's
// own.
class ConstantFlow final : public VideoTransformer {
 public:
  const TransformerConfig& config() const override { return config_; }

  absl::StatusOr<std::shared_ptr<const TextConditioning>> PrepareText(
      std::span<const at::Tensor> contexts, const WorkGate& /*gate*/) override {
    std::vector<double> values;
    for (const at::Tensor& context : contexts) {
      values.push_back(*context.to(at::kDouble).contiguous().const_data_ptr<double>());
    }
    ++texts_prepared;
    return std::make_shared<const TextValue>(std::move(values));
  }

  absl::StatusOr<at::Tensor> Forward(const at::Tensor& latents, const at::Tensor& timestep,
                                     const TextConditioning& text, const WorkGate& /*gate*/,
                                     const ForwardPolicy& policy) override {
    policies.push_back(policy);
    if (policy.blocks == BlockUse::kComputeAndKeep) ++static_cast<const TextValue&>(text).kept;
    batches.push_back(latents.size(0));
    timesteps.push_back(timestep.clone());
    inputs.push_back(latents.select(0, 0).clone());
    if (BlockMarks* const marks = std::exchange(marks_, nullptr); marks != nullptr) {
      marks->Begin(at::kCPU, 3, static_cast<int>(text.batch()), {{"first", "a"}, {"second", "b"}});
      marks->End(0);
      marks->End(1);
    }
    std::vector<at::Tensor> flows;
    for (const double value : static_cast<const TextValue&>(text).values) {
      flows.push_back(at::full({2, 3, 2, 2}, value + own_flow, latents.options()));
    }
    return at::stack(flows);
  }

  int64_t WeightBytes() const override { return 0; }
  void MarkBlock(BlockMarks* marks) override { marks_ = marks; }

  // What each forward did with its blocks: "c" computed, "k" also kept, "r" reused.
  std::string Uses() const {
    std::string uses;
    for (const ForwardPolicy& policy : policies) {
      uses += policy.blocks == BlockUse::kReuse            ? 'r'
              : policy.blocks == BlockUse::kComputeAndKeep ? 'k'
                                                           : 'c';
    }
    return uses;
  }

  std::vector<ForwardPolicy> policies;
  std::vector<int64_t> batches;
  std::vector<at::Tensor> timesteps;
  std::vector<at::Tensor> inputs;  // of the first batch entry
  int texts_prepared = 0;
  double own_flow = 0;

 private:
  TransformerConfig config_;
  BlockMarks* marks_ = nullptr;
};

// Keeps the parts of each Step_N_Inference.
class PartSink final : public TelemetrySink {
 public:
  void OnSpanEnd(const SpanRecord& record) override {
    if (record.stage.kind == StageKind::kStepInference) steps.push_back(record);
  }

  std::vector<std::string> Names(size_t step) const {
    std::vector<std::string> names;
    for (const SpanPart& part : steps[step].parts) names.push_back(part.name);
    return names;
  }

  std::vector<SpanRecord> steps;
};

class DenoiseLoopTest : public testing::Test {
 protected:
  DenoiseLoopTest() {
    plan_.latent_shape = {2, 3, 2, 2};
    plan_.tokens = 6;
    for (const double timestep : {1000.0, 750.0})
      plan_.steps.push_back({timestep, ExpertRole::kOnly, 3.0});
  }

  absl::StatusOr<at::Tensor> Run(std::stop_token stop = {}) {
    const DenoiseInputs inputs{plan_, at::full({1, 4}, 5.0), at::full({1, 4}, 1.0), first_frame_,
                               condition_};
    const auto expert_for = [&](int step) -> absl::StatusOr<VideoTransformer*> {
      experts_asked_.emplace_back(NameOf(plan_.steps[step].expert));
      if (!expert_status_.ok()) return expert_status_;
      return plan_.steps[step].expert == ExpertRole::kLowNoise ? &low_ : &transformer_;
    };
    auto solver = MakeFlowSolver("euler", static_cast<int>(plan_.steps.size()), 1.0);
    Recorder recorder(clock_, monitor_, {&parts_});
    if (look_before_.defined()) finite_.Look(StageKind::kT5Encoding, "the texts", look_before_);
    return DenoiseLoop(inputs, {.latents = at::ones({2, 3, 2, 2})}, expert_for, **solver, recorder,
                       stop, finite_, [&](const DenoiseState& state) {
                         flows_.push_back(*state.flow.const_data_ptr<float>());
                         return on_step_;
                       });
  }

  GenerationPlan plan_;
  at::Tensor first_frame_;
  at::Tensor condition_;
  ConstantFlow transformer_;
  ConstantFlow low_;
  std::vector<std::string> experts_asked_;
  absl::Status expert_status_;
  absl::Status on_step_;
  std::vector<float> flows_;
  FiniteWatch finite_{plan_};
  at::Tensor look_before_;
  PartSink parts_;
  fakes::FakeClock clock_;
  fakes::FakeDeviceMonitor monitor_;
};

TEST_F(DenoiseLoopTest, AStepConsistsOfItsForwardsAndTheSolver) {
  plan_.forward_flops = 100;
  ASSERT_TRUE(Run().ok());
  ASSERT_EQ(parts_.steps.size(), 2u);
  EXPECT_THAT(parts_.Names(0), ElementsAre("text_projection", "forward_conditional",
                                           "forward_unconditional", "solver"));
  EXPECT_THAT(parts_.Names(1),
              ElementsAre("forward_conditional", "forward_unconditional", "solver"));
  double end = 0;
  for (const SpanPart& part : parts_.steps[1].parts) {
    EXPECT_NEAR(part.start_seconds, end, 1e-9) << part.name << " follows the part before it";
    EXPECT_GE(part.seconds, 0);
    end = part.start_seconds + part.seconds;
  }
  EXPECT_EQ(parts_.steps[1].parts[0].flops, 100);
  EXPECT_EQ(parts_.steps[1].parts[2].flops, std::nullopt);
}

TEST_F(DenoiseLoopTest, OneBatchIsOnePart) {
  plan_.forward_flops = 100;
  plan_.batched_guidance = true;
  plan_.steps[1].guidance_scale = 1;
  ASSERT_TRUE(Run().ok());
  EXPECT_THAT(parts_.Names(0), ElementsAre("text_projection", "forward", "solver"));
  EXPECT_EQ(parts_.steps[0].parts[1].flops, 200) << "both texts";
  EXPECT_THAT(parts_.Names(1), ElementsAre("text_projection", "forward_conditional", "solver"));
}

// The steps that have a profile.
std::vector<int> ProfiledSteps(const PartSink& parts) {
  std::vector<int> steps;
  for (const SpanRecord& step : parts.steps) {
    if (step.block_profile != nullptr) steps.push_back(step.stage.step);
  }
  return steps;
}

TEST_F(DenoiseLoopTest, AJobThatAsksForItProfilesABlockOfItsSecondStep) {
  plan_.steps.push_back({500, ExpertRole::kOnly, 3});
  ASSERT_TRUE(Run().ok());
  EXPECT_THAT(ProfiledSteps(parts_), ElementsAre());
  parts_.steps.clear();
  plan_.request.profile = true;
  ASSERT_TRUE(Run().ok());
  ASSERT_THAT(ProfiledSteps(parts_), ElementsAre(1));
  const SpanRecord& step = parts_.steps[1];
  const BlockProfile& profile = *step.block_profile;
  EXPECT_EQ(profile.part, "forward_conditional");
  EXPECT_EQ(profile.block, 3);
  EXPECT_EQ(profile.texts, 1);
  ASSERT_EQ(profile.operators.size(), 2u);
  EXPECT_EQ(profile.operators[1].work.name, "second");
  EXPECT_GE(profile.operators[1].seconds, 0);
  EXPECT_LE(profile.operators[0].seconds + profile.operators[1].seconds, step.parts[0].seconds);
}

TEST_F(DenoiseLoopTest, TheProfiledStepFindsItsExpertWarm) {
  plan_.request.profile = true;
  plan_.batched_guidance = true;
  plan_.steps = {{1000, ExpertRole::kHighNoise, 3},
                 {800, ExpertRole::kLowNoise, 3},
                 {600, ExpertRole::kLowNoise, 3},
                 {400, ExpertRole::kLowNoise, 3}};
  ASSERT_TRUE(Run().ok());
  EXPECT_THAT(ProfiledSteps(parts_), ElementsAre(2));
  EXPECT_EQ(parts_.steps[2].block_profile->part, "forward");
  EXPECT_EQ(parts_.steps[2].block_profile->texts, 2);
}

TEST_F(DenoiseLoopTest, AJobOfOneStepProfilesThat) {
  plan_.request.profile = true;
  plan_.steps.resize(1);
  ASSERT_TRUE(Run().ok());
  EXPECT_THAT(ProfiledSteps(parts_), ElementsAre(0));
}

TEST_F(DenoiseLoopTest, AStepWhoseSuccessorReusesKeeps) {
  constexpr ExpertRole kHigh = ExpertRole::kHighNoise;
  constexpr ExpertRole kLow = ExpertRole::kLowNoise;
  plan_.steps = {{1000, kHigh, 3}, {900, kHigh, 3, true}, {800, kHigh, 3, true}, {700, kHigh, 3},
                 {600, kLow, 3},   {500, kLow, 3},        {400, kLow, 3, true}};
  plan_.forward_flops = 100;
  plan_.reuse_flops = 1;
  ASSERT_TRUE(Run().ok());
  EXPECT_EQ(transformer_.Uses(), "kkrrrrcc");
  EXPECT_EQ(low_.Uses(), "cckkrr");
  EXPECT_THAT(parts_.Names(1), ElementsAre("reuse_conditional", "reuse_unconditional", "solver"));
  EXPECT_EQ(parts_.steps[1].parts[0].flops, 1);
  EXPECT_EQ(parts_.steps[3].parts[0].flops, 100);

  plan_.batched_guidance = true;
  transformer_.policies.clear();
  parts_.steps.clear();
  ASSERT_TRUE(Run().ok());
  EXPECT_EQ(transformer_.Uses(), "krrc");
  EXPECT_THAT(parts_.Names(1), ElementsAre("reuse", "solver"));
  EXPECT_EQ(parts_.steps[1].parts[0].flops, 2);
  EXPECT_EQ(parts_.steps[1].parts[0].change_ratio, std::nullopt);
}

TEST_F(DenoiseLoopTest, EveryForwardOfAJobHasItsBits) {
  for (const bool eight_bits : {false, true}) {
    plan_.eight_bits = eight_bits;
    transformer_.policies.clear();
    ASSERT_TRUE(Run().ok());
    for (const ForwardPolicy& policy : transformer_.policies) {
      EXPECT_EQ(policy.eight_bits, eight_bits);
    }
  }
}

TEST_F(DenoiseLoopTest, AJobThatCalibratesKeepsEveryStepAndTellsItsRatios) {
  plan_.request.calibrate = true;
  plan_.steps = {{1000, ExpertRole::kHighNoise, 3},
                 {800, ExpertRole::kHighNoise, 3},
                 {600, ExpertRole::kLowNoise, 3}};
  ASSERT_TRUE(Run().ok());
  EXPECT_EQ(transformer_.Uses(), "kkkk");
  EXPECT_EQ(low_.Uses(), "kk");
  ASSERT_EQ(parts_.Names(1)[0], "forward_conditional");
  EXPECT_EQ(parts_.steps[1].parts[0].change_ratio, 7) << "5 of the text and 2 forwards that kept";
  EXPECT_EQ(parts_.steps[1].parts[1].change_ratio, 3);
  EXPECT_EQ(parts_.steps[0].parts[1].change_ratio, std::nullopt) << "nothing came before";
  EXPECT_EQ(parts_.steps[2].parts[1].change_ratio, std::nullopt) << "another expert's first step";
}

TEST_F(DenoiseLoopTest, TheProfiledStepComputesItsBlocks) {
  plan_.request.profile = true;
  plan_.steps = {{1000, ExpertRole::kOnly, 3},
                 {800, ExpertRole::kOnly, 3, true},
                 {600, ExpertRole::kOnly, 3},
                 {400, ExpertRole::kOnly, 3, true}};
  ASSERT_TRUE(Run().ok());
  EXPECT_THAT(ProfiledSteps(parts_), ElementsAre(2));
  plan_.steps.resize(2);
  parts_.steps.clear();
  ASSERT_TRUE(Run().ok());
  EXPECT_THAT(ProfiledSteps(parts_), ElementsAre(0)) << "the last one that computes";
}

TEST_F(DenoiseLoopTest, GuidesAwayFromTheNegativePrompt) {
  // 1 + 3 * (5 - 1) = 13 at each step; Euler adds it over the whole way from sigma 1 to 0.
  const auto latents = Run();
  ASSERT_TRUE(latents.ok()) << latents.status();
  EXPECT_THAT(flows_, ElementsAre(13, 13));
  EXPECT_TRUE(at::equal(*latents, at::full({2, 3, 2, 2}, 1.0f - 13.0f)));
}

// DIFFERENCES 7: upstream runs and combines both forwards whatever the guidance scale is.
TEST_F(DenoiseLoopTest, Item7GuidanceBelowOneStillRunsBothForwards) {
  for (const double guidance : {0.75, 0.5, 0.0}) {
    SCOPED_TRACE(guidance);
    transformer_.batches.clear();
    flows_.clear();
    for (StepPlan& step : plan_.steps) step.guidance_scale = guidance;
    ASSERT_TRUE(Run().ok());
    EXPECT_THAT(transformer_.batches, ElementsAre(1, 1, 1, 1));
    EXPECT_THAT(flows_, testing::Each(static_cast<float>(1 + guidance * 4)));
  }
}

// With a scale of exactly 1 the negative prompt's forward is multiplied by 0: it is not run.
TEST_F(DenoiseLoopTest, Item7GuidanceOfExactlyOneRunsThePromptAlone) {
  for (const bool batched : {false, true}) {
    SCOPED_TRACE(batched);
    plan_.batched_guidance = batched;
    transformer_.batches.clear();
    transformer_.texts_prepared = 0;
    flows_.clear();
    for (StepPlan& step : plan_.steps) step.guidance_scale = 1;
    ASSERT_TRUE(Run().ok());
    EXPECT_THAT(transformer_.batches, ElementsAre(1, 1));
    EXPECT_EQ(transformer_.texts_prepared, 1);
    EXPECT_THAT(flows_, testing::Each(5.0f));
  }
}

TEST_F(DenoiseLoopTest, ExpertsWithAndWithoutGuidanceTakeTurns) {
  plan_.steps = {{1000, ExpertRole::kHighNoise, 3}, {400, ExpertRole::kLowNoise, 1}};
  plan_.batched_guidance = true;
  low_.own_flow = 10;
  ASSERT_TRUE(Run().ok());
  EXPECT_THAT(flows_, ElementsAre(13, 15));
  EXPECT_THAT(transformer_.batches, ElementsAre(2));
  EXPECT_THAT(low_.batches, ElementsAre(1));
}

TEST_F(DenoiseLoopTest, OneBatchGivesWhatTwoForwardsGive) {
  const auto separate = Run();
  plan_.batched_guidance = true;
  transformer_.batches.clear();
  const auto batched = Run();
  EXPECT_THAT(transformer_.batches, ElementsAre(2, 2));
  EXPECT_TRUE(at::equal(*separate, *batched));
}

TEST_F(DenoiseLoopTest, TextsArePreparedOncePerJob) {
  ASSERT_TRUE(Run().ok());
  EXPECT_EQ(transformer_.texts_prepared, 2);
  EXPECT_EQ(transformer_.timesteps.size(), 4u);
}

// DIFFERENCES 12: the clean first frame stands after every step and its tokens have timestep 0.
TEST_F(DenoiseLoopTest, Item12TheFirstFrameStaysAndItsTokensHaveTimestepZero) {
  first_frame_ = at::full({2, 1, 2, 2}, 7.0);
  const auto latents = Run();
  ASSERT_TRUE(latents.ok()) << latents.status();
  EXPECT_TRUE(at::equal(latents->narrow(1, 0, 1), first_frame_));
  const at::Tensor timestep = transformer_.timesteps.front();
  ASSERT_EQ(timestep.sizes(), at::IntArrayRef({1, 6}));
  EXPECT_TRUE(at::equal(timestep.narrow(1, 0, 2), at::zeros({1, 2}, at::kDouble)));
  EXPECT_TRUE(at::equal(timestep.narrow(1, 2, 4), at::full({1, 4}, 1000.0, at::kDouble)));
}

// DIFFERENCES 21: without an image one timestep stands for all tokens.
TEST_F(DenoiseLoopTest, Item21TextToVideoHasOneTimestep) {
  ASSERT_TRUE(Run().ok());
  EXPECT_EQ(transformer_.timesteps.front().sizes(), at::IntArrayRef({1}));
}

TEST_F(DenoiseLoopTest, EveryStepRunsOnItsExpertWithTextsOfItsOwn) {
  constexpr ExpertRole kHigh = ExpertRole::kHighNoise;
  constexpr ExpertRole kLow = ExpertRole::kLowNoise;
  plan_.steps = {{1000, kHigh, 3}, {900, kHigh, 3}, {800, kLow, 2}, {400, kLow, 2}};
  low_.own_flow = 10;
  ASSERT_TRUE(Run().ok());
  EXPECT_THAT(experts_asked_, ElementsAre("high", "high", "low", "low"));
  // High: 1 + 3 * (5 - 1); low: 11 + 2 * (15 - 11).
  EXPECT_THAT(flows_, ElementsAre(13, 13, 19, 19));
  EXPECT_EQ(transformer_.timesteps.size(), 4u);
  EXPECT_EQ(low_.timesteps.size(), 4u);
  EXPECT_EQ(transformer_.texts_prepared, 2);
  EXPECT_EQ(low_.texts_prepared, 2);
}

TEST_F(DenoiseLoopTest, AnExpertThatCannotBeBroughtUpEndsTheLoop) {
  expert_status_ = absl::ResourceExhaustedError("no room for the expert");
  EXPECT_EQ(Run().status().message(), "no room for the expert");
  EXPECT_TRUE(transformer_.batches.empty());
}

// DIFFERENCES 13: the condition stands behind the noisy latents, the same in every forward.
TEST_F(DenoiseLoopTest, Item13TheConditionFollowsTheLatentsInEveryForward) {
  condition_ = at::full({5, 3, 2, 2}, 9.0);
  for (const bool batched : {false, true}) {
    SCOPED_TRACE(batched);
    plan_.batched_guidance = batched;
    transformer_.inputs.clear();
    ASSERT_TRUE(Run().ok());
    ASSERT_EQ(transformer_.inputs.size(), batched ? 2u : 4u);
    for (const at::Tensor& input : transformer_.inputs) {
      ASSERT_EQ(input.sizes(), at::IntArrayRef({7, 3, 2, 2}));
      EXPECT_TRUE(at::equal(input.narrow(0, 2, 5), condition_));
    }
    EXPECT_TRUE(at::equal(transformer_.inputs.front().narrow(0, 0, 2), at::ones({2, 3, 2, 2})));
  }
}

TEST_F(DenoiseLoopTest, WithoutGuidanceThePromptRunsAlone) {
  plan_.guided = false;
  ASSERT_TRUE(Run().ok());
  EXPECT_THAT(transformer_.batches, ElementsAre(1, 1));
  EXPECT_EQ(transformer_.texts_prepared, 1);
  EXPECT_THAT(flows_, ElementsAre(5, 5));
}

TEST_F(DenoiseLoopTest, AStopRequestIsSeenBeforeTheFirstForward) {
  std::stop_source stop;
  stop.request_stop();
  EXPECT_EQ(Run(stop.get_token()).status().code(), absl::StatusCode::kCancelled);
  EXPECT_TRUE(transformer_.batches.empty());
}

TEST_F(DenoiseLoopTest, AnErrorAfterAStepEndsTheLoop) {
  on_step_ = absl::DataLossError("no room for a preview");
  EXPECT_EQ(Run().status().message(), "no room for a preview");
  EXPECT_EQ(flows_.size(), 1u);
}

TEST_F(DenoiseLoopTest, LatentsThatAreNotFiniteEndTheLoopBeforeAnybodySeesThem) {
  for (const double value :
       {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity(),
        -std::numeric_limits<double>::infinity()}) {
    SCOPED_TRACE(value);
    flows_.clear();
    parts_.steps.clear();
    plan_.steps = {{1000, ExpertRole::kHighNoise, 3}, {400, ExpertRole::kLowNoise, 3}};
    low_.own_flow = value;
    const absl::Status status = Run().status();
    EXPECT_TRUE(IsNotFinite(status)) << status;
    EXPECT_THAT(std::string(status.message()),
                HasSubstr("the latents of step 2 of 2 (stage Step_1_Inference, expert low) are "
                          "not finite"));
    EXPECT_THAT(flows_, ElementsAre(13)) << "the second step was handed on";
    ASSERT_EQ(parts_.steps.size(), 2u);
    EXPECT_TRUE(IsNotFinite(parts_.steps[1].status)) << "the step's stage failed";
  }
}

TEST_F(DenoiseLoopTest, WhatWasLookedAtBeforeIsJudgedWithTheFirstStep) {
  look_before_ = at::full({3}, std::numeric_limits<double>::quiet_NaN(), at::kFloat);
  transformer_.own_flow = std::numeric_limits<double>::quiet_NaN();  // it has read them
  const absl::Status status = Run().status();
  EXPECT_TRUE(IsNotFinite(status)) << status;
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("the texts (stage T5_Encoding) are not finite"));
  EXPECT_THAT(flows_, ElementsAre());
  EXPECT_EQ(parts_.steps.size(), 1u);
}

TEST_F(DenoiseLoopTest, WhatIsNotFiniteNamesTheLorasThatMayBeAtFault) {
  transformer_.own_flow = std::numeric_limits<double>::infinity();
  EXPECT_THAT(std::string(Run().status().message()),
              AllOf(HasSubstr("no LoRA changes them"), HasSubstr("wan_inspect checkpoint")));
  plan_.request.loras = {{"style", 0.8}, {"off", 0}, {"light", -1}};
  EXPECT_THAT(std::string(Run().status().message()),
              AllOf(HasSubstr("style with scale 0.8, light with scale -1: try it without them, or "
                              "with smaller scales"),
                    Not(HasSubstr("off")), HasSubstr("wan_inspect checkpoint")));
  // LoRAs change nothing that comes before the steps.
  EXPECT_THAT(std::string(NotFiniteIn(plan_, StageKind::kT5Encoding, "the texts").message()),
              HasSubstr("no LoRA changes them"));
}

TEST(DrawNoiseTest, DependsOnTheSeedAlone) {
  const at::Tensor first = DrawNoise({2, 3}, 42, at::kCPU);
  // Draws between do not matter.
  DrawNoise({100}, 1, at::kCPU);
  EXPECT_TRUE(at::equal(first, DrawNoise({2, 3}, 42, at::kCPU)));
  EXPECT_FALSE(at::equal(first, DrawNoise({2, 3}, 43, at::kCPU)));
}

}  // namespace
}  // namespace wan
