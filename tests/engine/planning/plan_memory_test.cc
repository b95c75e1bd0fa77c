// What a plan says about memory: which policies fit a card, and what is refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/checkpoint/synthetic_models.h"
#include "engine/costs/wan/transformer_cost.h"
#include "engine/costs/wan/umt5_cost.h"
#include "engine/costs/wan/vae_cost.h"
#include "engine/planning/lora_memory.h"
#include "engine/planning/planned_model.h"
#include "engine/planning/tile_geometry.h"
#include "tests/engine/planning/plan_support.h"

namespace wan {
namespace {

using testing::Each;
using testing::HasSubstr;

constexpr uint64_t kMiB = uint64_t{1} << 20;

using Policy = ResidencyPolicy;

PlannedModel OneExpert() { return Published("ti2v-5b"); }
PlannedModel TwoExperts() { return Published("t2v-a14b"); }

absl::StatusOr<GenerationPlan> PlanOn(const PlannedModel& model, const GenerationRequest& request,
                                      uint64_t device_bytes) {
  return PlanOn(model, request, GoodTexts(), {device_bytes});
}

Policy PolicyIn(const GenerationPlan& plan, ModelComponent component) {
  for (const ComponentResidency& entry : plan.residency) {
    if (entry.component == component) return entry.policy;
  }
  ADD_FAILURE() << NameOf(component);
  return Policy::kAuto;
}

// Peaks that an H200's allocator reported (docs/measured/gpu.md): 24.52 GiB in a step and 33.95 GiB
// while decoding, of which 22.64 GiB weights.
TEST(PlanMemoryTest, TheEstimateOfTheRealModelIsWhatWasMeasured) {
  const auto plan = PlanOn(OneExpert(), SizedRequest(1280, 704, 121), 0);
  ASSERT_TRUE(plan.ok()) << plan.status();
  const StagePlan& step = StageOf(*plan, "Step_0_Inference");
  EXPECT_GE(step.activation_bytes, static_cast<uint64_t>(1.82 * kGiB));
  EXPECT_LE(step.activation_bytes + step.weight_bytes, static_cast<uint64_t>(1.05 * 24.52 * kGiB));
  const StagePlan& decoding = StageOf(*plan, "VAE_Decoding");
  EXPECT_GE(decoding.activation_bytes, static_cast<uint64_t>(11.25 * kGiB));
  EXPECT_LE(decoding.activation_bytes, static_cast<uint64_t>(1.05 * 11.25 * kGiB));
  EXPECT_EQ(plan->peak_device_bytes, decoding.activation_bytes + decoding.weight_bytes);
}

TEST(PlanMemoryTest, WithoutALimitEverythingIsResident) {
  const auto plan = PlanOn(OneExpert(), SizedRequest(1280, 704, 121), 0);
  ASSERT_TRUE(plan.ok()) << plan.status();
  for (const ComponentResidency& entry : plan->residency) {
    EXPECT_EQ(entry.policy, Policy::kResident) << NameOf(entry.component);
  }
  EXPECT_TRUE(plan->decode_tiles.IsWhole());
}

// The least that policies leave on the device, added up here and not by planning.
uint64_t ResidentBytes(const PlannedModel& model, const GenerationPlan& plan) {
  uint64_t bytes = 0;
  for (const PlannedComponent& component : model.components) {
    if (PolicyIn(plan, component.component) == Policy::kResident) bytes += component.bytes;
  }
  return bytes;
}

TEST(PlanMemoryTest, NeverPlansMoreThanThereIs) {
  for (const PlannedModel& model : {OneExpert(), TwoExperts()}) {
    const bool two = model.components.size() > 3;
    for (const VideoShape& shape : {VideoShape{256, 256, 33}, VideoShape{832, 480, 81},
                                    VideoShape{1280, 704, 121}, VideoShape{1280, 704, 161}}) {
      bool fitted = false;
      for (uint64_t gib = 2; gib <= 144; gib += 2) {
        SCOPED_TRACE(testing::Message() << shape.width << "x" << shape.height << "x"
                                        << shape.num_frames << " on " << gib << " GiB");
        const auto plan =
            PlanOn(model, SizedRequest(shape.width, shape.height, shape.num_frames), gib * kGiB);
        // The cards' table has all of them on 16 GiB; none of the models streams in 2.
        if (gib == 2) {
          EXPECT_FALSE(plan.ok());
        }
        if (gib >= (two ? 16 : 8) || fitted) {
          EXPECT_TRUE(plan.ok()) << plan.status();
        }
        if (!plan.ok()) continue;
        fitted = true;
        EXPECT_LE(plan->peak_device_bytes, gib * kGiB);
        EXPECT_LT(ResidentBytes(model, *plan), gib * kGiB);
        uint64_t largest = 0;
        for (const StagePlan& stage : plan->stages) {
          largest = std::max(largest, stage.weight_bytes + stage.activation_bytes);
          if (stage.activation_bytes > 0) {
            EXPECT_GE(stage.weight_bytes, ResidentBytes(model, *plan)) << NameOf(stage.stage);
          }
        }
        EXPECT_EQ(largest, plan->peak_device_bytes);
        for (const ComponentResidency& entry : plan->residency) {
          EXPECT_NE(entry.policy, Policy::kAuto);
          EXPECT_NE(entry.policy, Policy::kCpu) << "never on its own account";
        }
      }
      EXPECT_TRUE(fitted);
    }
  }
}

TEST(PlanMemoryTest, ASmallerCardMovesTheCheapestWeightsFirst) {
  const GenerationRequest request = SizedRequest(1280, 704, 121);
  // Everything needs 34 GiB.
  const auto large = PlanOn(OneExpert(), request, 36 * kGiB);
  ASSERT_TRUE(large.ok()) << large.status();
  EXPECT_EQ(PolicyIn(*large, ModelComponent::kTextEncoder), Policy::kResident);
  EXPECT_EQ(PolicyIn(*large, ModelComponent::kTransformer), Policy::kResident);
  const auto medium = PlanOn(OneExpert(), request, 26 * kGiB);
  ASSERT_TRUE(medium.ok()) << medium.status();
  EXPECT_EQ(PolicyIn(*medium, ModelComponent::kTransformer), Policy::kHost);
  EXPECT_EQ(PolicyIn(*medium, ModelComponent::kTextEncoder), Policy::kResident);
  const auto small = PlanOn(OneExpert(), request, 22 * kGiB);
  ASSERT_TRUE(small.ok()) << small.status();
  EXPECT_EQ(PolicyIn(*small, ModelComponent::kTextEncoder), Policy::kHost);
  EXPECT_EQ(PolicyIn(*small, ModelComponent::kTransformer), Policy::kHost);
  EXPECT_TRUE(small->decode_tiles.IsWhole());
}

TEST(PlanMemoryTest, TilesAreTheLastResort) {
  const GenerationRequest request = SizedRequest(1280, 704, 121);
  const auto whole = PlanOn(OneExpert(), request, 15 * kGiB);
  ASSERT_TRUE(whole.ok()) << whole.status();
  EXPECT_TRUE(whole->decode_tiles.IsWhole());
  const auto tiled = PlanOn(OneExpert(), request, 12 * kGiB);
  ASSERT_TRUE(tiled.ok()) << tiled.status();
  EXPECT_FALSE(tiled->decode_tiles.IsWhole());
  const auto flops = [](const GenerationPlan& plan) {
    return plan.stages[plan.stages.size() - 2].flops.value_or(0);
  };
  EXPECT_GT(flops(*tiled), 1.05 * flops(*whole)) << "tiles overlap";
  EXPECT_LT(flops(*tiled), 3 * flops(*whole));
}

TEST(PlanMemoryTest, ConfiguredPoliciesHold) {
  PlannedModel model = OneExpert();
  for (const Policy policy : {Policy::kResident, Policy::kHost, Policy::kStream, Policy::kCpu}) {
    model.components[0].policy = policy;
    const auto plan = PlanOn(model, SizedRequest(832, 480, 81), 141 * kGiB);
    ASSERT_TRUE(plan.ok()) << plan.status();
    EXPECT_EQ(PolicyIn(*plan, ModelComponent::kTextEncoder), policy);
    EXPECT_EQ(PolicyIn(*plan, ModelComponent::kTransformer), Policy::kResident);
  }
}

TEST(PlanMemoryTest, WhatStagesHoldFollowsThePolicies) {
  PlannedModel model = OneExpert();
  for (PlannedComponent& component : model.components) component.policy = Policy::kHost;
  model.components[1].policy = Policy::kStream;
  const auto plan = PlanOn(model, SizedRequest(832, 480, 81), 141 * kGiB);
  ASSERT_TRUE(plan.ok()) << plan.status();
  const std::vector<PlannedComponent>& parts = model.components;
  EXPECT_EQ(StageOf(*plan, "T5_Encoding").weight_bytes, parts[0].bytes);
  EXPECT_EQ(StageOf(*plan, "Step_0_Inference").weight_bytes,
            parts[1].base_bytes + 2 * parts[1].group_bytes);
  EXPECT_EQ(StageOf(*plan, "VAE_Decoding").weight_bytes, parts[2].bytes);
}

TEST(PlanMemoryTest, OnTheCpuAComponentHoldsNothingOfTheDevice) {
  PlannedModel model = OneExpert();
  const auto before = PlanOn(model, SizedRequest(1280, 704, 121), 0);
  model.components[2].policy = Policy::kCpu;
  const auto plan = PlanOn(model, SizedRequest(1280, 704, 121), 0);
  ASSERT_TRUE(plan.ok() && before.ok());
  EXPECT_EQ(StageOf(*plan, "VAE_Decoding").weight_bytes,
            model.components[0].bytes + model.components[1].bytes);
  EXPECT_LT(StageOf(*plan, "VAE_Decoding").activation_bytes, kGiB);
}

TEST(PlanMemoryTest, TheNextExpertIsPrefetchedWhereBothFit) {
  const GenerationRequest request = SizedRequest(832, 480, 81);
  PlannedModel model = TwoExperts();
  model.components[1].policy = Policy::kHost;
  model.components[2].policy = Policy::kHost;
  const auto wide = PlanOn(model, request, 80 * kGiB);
  ASSERT_TRUE(wide.ok()) << wide.status();
  EXPECT_TRUE(wide->prefetch_experts);
  EXPECT_GE(StageOf(*wide, "Step_0_Inference").weight_bytes, 2 * model.components[1].bytes);
  const auto narrow = PlanOn(model, request, 40 * kGiB);
  ASSERT_TRUE(narrow.ok()) << narrow.status();
  EXPECT_FALSE(narrow->prefetch_experts);
  EXPECT_LT(StageOf(*narrow, "Step_0_Inference").weight_bytes, 2 * model.components[1].bytes);
}

TEST(PlanMemoryTest, APrefetchedExpertCountsWhateverItsPolicy) {
  const GenerationRequest request = SizedRequest(832, 480, 81);
  PlannedModel model = TwoExperts();
  for (PlannedComponent& component : model.components) component.policy = Policy::kStream;
  const uint64_t one = model.components[1].base_bytes + 2 * model.components[1].group_bytes;
  const auto wide = PlanOn(model, request, 80 * kGiB);
  ASSERT_TRUE(wide.ok()) << wide.status();
  EXPECT_TRUE(wide->prefetch_experts);
  EXPECT_EQ(StageOf(*wide, "Step_0_Inference").weight_bytes, 2 * one);
  EXPECT_EQ(StageOf(*wide, "Step_39_Inference").weight_bytes, one) << "nothing comes after it";
}

TEST(PlanMemoryTest, APreviewIsDecodedBesideThePrefetchedExpert) {
  GenerationRequest request = SizedRequest(832, 480, 81);
  PlannedModel model = TwoExperts();
  for (PlannedComponent& component : model.components) component.policy = Policy::kHost;
  // So large that a step with a preview holds more than the step itself.
  model.components[3].bytes = 20 * kGiB;
  request.preview_interval = 1;
  const auto plan = PlanOn(model, request, 141 * kGiB);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_TRUE(plan->prefetch_experts);
  EXPECT_EQ(StageOf(*plan, "Step_0_Inference").weight_bytes,
            2 * model.components[1].bytes + 20 * kGiB);
}

TEST(PlanMemoryTest, ExpertsOnASmallCardAreStreamed) {
  const auto plan = PlanOn(TwoExperts(), SizedRequest(832, 480, 81), 22 * kGiB);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(PolicyIn(*plan, ModelComponent::kTransformer), Policy::kStream);
  EXPECT_EQ(PolicyIn(*plan, ModelComponent::kTransformer2), Policy::kStream);
}

TEST(PlanMemoryTest, SmallVideosRecordTheirForwardsWhereThatFits) {
  const GenerationRequest small = SizedRequest(256, 256, 5);
  const auto launched = PlanOn(OneExpert(), small, 0);
  ASSERT_TRUE(launched.ok()) << launched.status();
  EXPECT_FALSE(launched->record_forwards) << "a model that records nothing";

  PlannedModel model = OneExpert();
  model.records_forwards = true;
  const auto recorded = PlanOn(model, small, 0);
  ASSERT_TRUE(recorded.ok()) << recorded.status();
  EXPECT_TRUE(recorded->record_forwards);
  ASSERT_TRUE(recorded->batched_guidance);
  const uint64_t bytes = RecordedForwardBytes(model.transformer, recorded->tokens, 2, 2) +
                         RecordedForwardBytes(model.transformer, recorded->tokens, 1, 2);
  ASSERT_GT(bytes, 0u);
  // It stays beside everything else.
  for (const char* const stage : {"T5_Encoding", "Step_0_Inference", "VAE_Decoding"}) {
    EXPECT_GE(StageOf(*recorded, stage).activation_bytes,
              StageOf(*launched, stage).activation_bytes + bytes)
        << stage;
  }
  EXPECT_GT(recorded->peak_device_bytes, launched->peak_device_bytes);

  const auto tight = PlanOn(model, small, launched->peak_device_bytes);
  ASSERT_TRUE(tight.ok()) << "no job is refused for it: " << tight.status();
  EXPECT_FALSE(tight->record_forwards);
  EXPECT_EQ(tight->peak_device_bytes, launched->peak_device_bytes);

  const auto large = PlanOn(model, SizedRequest(1280, 704, 121), 0);
  ASSERT_TRUE(large.ok()) << large.status();
  EXPECT_FALSE(large->record_forwards);
}

TEST(PlanMemoryTest, StreamedWeightsRecordNothing) {
  PlannedModel model = OneExpert();
  model.records_forwards = true;
  model.components[1].policy = Policy::kStream;
  const auto plan = PlanOn(model, SizedRequest(256, 256, 5), 0);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_FALSE(plan->record_forwards);
}

TEST(PlanMemoryTest, ExpertsAreStreamedOnlyWhereForwardsAreLongEnoughToHideThem) {
  // Room for one expert and a little more.
  const PlannedModel model = TwoExperts();
  const auto large = PlanOn(model, SizedRequest(832, 480, 81), 42 * kGiB);
  ASSERT_TRUE(large.ok()) << large.status();
  EXPECT_TRUE(PolicyIn(*large, ModelComponent::kTransformer) == Policy::kStream ||
              PolicyIn(*large, ModelComponent::kTransformer2) == Policy::kStream);
  const auto small = PlanOn(model, SizedRequest(256, 256, 17), 42 * kGiB);
  ASSERT_TRUE(small.ok()) << small.status();
  EXPECT_EQ(PolicyIn(*small, ModelComponent::kTransformer), Policy::kHost);
  EXPECT_EQ(PolicyIn(*small, ModelComponent::kTransformer2), Policy::kHost);
}

TEST(PlanMemoryTest, WhatIsThereAnywayIsNotPrefetched) {
  const auto plan = PlanOn(TwoExperts(), SizedRequest(832, 480, 81), 141 * kGiB);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(PolicyIn(*plan, ModelComponent::kTransformer2), Policy::kResident);
  EXPECT_FALSE(plan->prefetch_experts);
}

TEST(PlanMemoryTest, WhatCannotFitIsRefusedWithWhatWould) {
  PlannedModel model = OneExpert();
  const uint64_t card = 11 * kGiB;
  const auto refused = PlanOn(model, SizedRequest(4096, 4096, 1021), card);
  const std::string text = Shortage(refused);
  EXPECT_THAT(text, HasSubstr("a video of 4096x4096 and 1021 frames needs "));
  EXPECT_THAT(text, HasSubstr("11.0 GiB is available. "));
  // What it names does fit, and a step more does not.
  int frames = 0;
  const size_t at = text.find("At this size ");
  ASSERT_NE(at, std::string::npos) << text;
  ASSERT_EQ(std::sscanf(text.c_str() + at, "At this size at most %d frames fit.", &frames), 1);
  EXPECT_TRUE(PlanOn(model, SizedRequest(4096, 4096, frames), card).ok());
  EXPECT_FALSE(PlanOn(model, SizedRequest(4096, 4096, frames + 4), card).ok());
  int width = 0;
  int height = 0;
  const size_t with = text.find("With this many frames ");
  ASSERT_NE(with, std::string::npos) << text;
  ASSERT_EQ(std::sscanf(text.c_str() + with, "With this many frames at most %dx%d fits.", &width,
                        &height),
            2);
  EXPECT_TRUE(PlanOn(model, SizedRequest(width, height, 1021), card).ok());
  EXPECT_FALSE(PlanOn(model, SizedRequest(width + 32, height + 32, 1021), card).ok());
}

TEST(PlanMemoryTest, WeightsAloneMayBeTooMuch) {
  PlannedModel model = OneExpert();
  model.components[1].policy = Policy::kResident;
  const std::string text = Shortage(PlanOn(model, SizedRequest(256, 256, 33), 4 * kGiB));
  EXPECT_THAT(text, HasSubstr("No video of this model fits"));
}

// A LoRA of rank 32 for all linear layers of an A14B's expert, in bf16: the largest term is the
// feed-forward's.
LoraFootprint Rank32() {
  constexpr int64_t kRank = 32;
  return {.factor_elements = kRank * (5120 + 13824),
          .factor_bytes = 2 * kRank * (5120 + 13824),
          .part_elements = int64_t{1} << 24};
}

TEST(LoraMemoryTest, MergingTakesAPartOfATensorAndTheFactors) {
  EXPECT_EQ(LoraMergingBytes({}), 0u);
  const std::vector<LoraFootprint> one = {Rank32()};
  // 64 MiB in fp32 of the tensor, 2.3 MiB of the factors.
  EXPECT_EQ(LoraMergingBytes(one), 64 * kMiB + 4 * 32 * (5120 + 13824));
  std::vector<LoraFootprint> both = {Rank32(), Rank32()};
  EXPECT_EQ(LoraMergingBytes(both), 64 * kMiB + 2 * 4 * 32 * (5120 + 13824));
  both[1].difference_bytes = 2 << 24;
  EXPECT_EQ(LoraMergingBytes(both), (64 + 64 + 32) * kMiB + 2 * 4 * 32 * (5120 + 13824));
}

TEST(LoraMemoryTest, WeightsInEightBitsAreReadAgainPartByPart) {
  const std::vector<LoraFootprint> one = {Rank32()};
  const uint64_t factors = 4 * 32 * (5120 + 13824);
  // Of a part 32 MiB in bf16 and 64 MiB in fp32, for the file's dtype or the sum.
  EXPECT_EQ(LoraMergingBytes(one, /*read_again_bytes=*/2), (32 + 64) * kMiB + factors);
}

TEST(LoraMemoryTest, TheFootprintIsOfTheLargestTerm) {
  const std::vector<std::byte> bytes(3 * 5 * 2);
  const auto stored = [&](std::vector<int64_t> shape, size_t count) {
    return StoredTensor{.dtype = DType::kBFloat16,
                        .shape = std::move(shape),
                        .bytes = std::span(bytes).first(count * 2)};
  };
  LoraFile file;
  file.terms.push_back({.target = "a",
                        .rows = 3,
                        .columns = 4,
                        .first = {.rows = 3,
                                  .columns = 4,
                                  .rank = 1,
                                  .up = stored({3, 1}, 3),
                                  .down = stored({1, 4}, 4)}});
  file.terms.push_back({.target = "b",
                        .rows = 3,
                        .columns = 5,
                        .first = {.rows = 3, .columns = 5, .whole = stored({3, 5}, 15)}});
  const LoraFootprint footprint = FootprintOf(file);
  EXPECT_EQ(footprint.factor_elements, 7);
  EXPECT_EQ(footprint.factor_bytes, 14);
  EXPECT_EQ(footprint.part_elements, 15);
  EXPECT_EQ(footprint.difference_bytes, 30);
  EXPECT_EQ(footprint.scratch_elements, 0);
}

TEST(LoraMemoryTest, ADoraAndBothProductsOfALoHaTakePartsOfTheirOwn) {
  const std::vector<std::byte> bytes(64);
  const auto stored = [&](std::vector<int64_t> shape) {
    return StoredTensor{.dtype = DType::kBFloat16, .shape = std::move(shape), .bytes = bytes};
  };
  const LoraMatrix product = {
      .rows = 4, .columns = 8, .rank = 1, .up = stored({4, 1}), .down = stored({1, 8})};
  LoraTerm term = {.target = "a", .rows = 4, .columns = 8, .form = LoraForm::kHadamard};
  term.first = product;
  term.second = product;
  LoraFile file;
  file.terms = {term};
  EXPECT_EQ(FootprintOf(file).scratch_elements, 2 * 32);
  EXPECT_EQ(FootprintOf(file).factor_elements, 2 * 12);
  file.terms[0].magnitude = LoraMagnitude::kOfRows;
  file.terms[0].lengths = stored({4});
  EXPECT_EQ(FootprintOf(file).scratch_elements, 4 * 32 + 4 * 8);
  std::vector<LoraFootprint> loras = {Rank32(), FootprintOf(file)};
  const uint64_t without = LoraMergingBytes(loras);
  loras[1].scratch_elements += int64_t{1} << 20;
  EXPECT_EQ(LoraMergingBytes(loras), without + 4 * kMiB);
}

TEST(PlanMemoryTest, MergingCountsInTheStepsOfTheExpertThatIsChanged) {
  PlannedModel model = TwoExperts();
  model.loras = {{"low", {std::nullopt, Rank32()}}};
  GenerationRequest request = SizedRequest(832, 480, 81);
  const auto plan = [&] { return PlanOn(model, request).value(); };
  const auto steps = [](const GenerationPlan& planned) {
    std::vector<uint64_t> bytes;
    for (const StagePlan& stage : planned.stages) {
      if (stage.stage.kind == StageKind::kStepInference) bytes.push_back(stage.activation_bytes);
    }
    return bytes;
  };
  const std::vector<uint64_t> without = steps(plan());
  request.loras = {{"low", 1}};
  const GenerationPlan with = plan();
  const std::vector<uint64_t> merged = steps(with);
  const std::vector<LoraFootprint> one = {Rank32()};
  ASSERT_EQ(merged.size(), without.size());
  for (size_t i = 0; i < merged.size(); ++i) {
    const bool changed = with.steps[i].expert == ExpertRole::kLowNoise;
    EXPECT_EQ(merged[i] - without[i],
              changed ? LoraMergingBytes(one) + LoraMergingBytes(one) / 100 : 0)
        << "step " << i;
  }
  request.loras[0].low_scale = 0;
  EXPECT_EQ(steps(plan()), without) << "nothing is merged there";
}

TEST(TileGridTest, TilesShrinkDownToLittleMoreThanTheirOverlap) {
  const LatentSize latents{31, 44, 80};
  LatentSize last = latents;
  for (const TileGrid& grid : TileGrids(latents)) {
    const LatentSize tile = TileOf(latents, grid);
    EXPECT_LE(tile.height * tile.width, last.height * last.width);
    EXPECT_GE(std::min(tile.height, tile.width), kSmallestTile);
    // All of the frame is covered.
    EXPECT_GE(grid.rows * tile.height - (grid.rows - 1) * kTileOverlap, latents.height);
    EXPECT_GE(grid.columns * tile.width - (grid.columns - 1) * kTileOverlap, latents.width);
    last = tile;
  }
  EXPECT_GE(TileGrids(latents).size(), 4u);
  EXPECT_TRUE(TileGrids({31, 8, 8}).empty());
}

// Twice a size must be felt as what grows with it: a walk that drops a factor is found.
TEST(MemoryEstimateTest, GrowsWithEverySize) {
  const SyntheticModel real = *FindSyntheticModel("ti2v-5b");
  const auto ratio = [](uint64_t more, uint64_t less) {
    return static_cast<double>(more) / static_cast<double>(less);
  };
  const auto forward = [&](int64_t tokens, int64_t batch, int64_t bytes) {
    return ForwardBytes(real.transformer, tokens, batch, bytes);
  };
  // The rotary table is one for both videos of a batch, and what is in fp32 stays there.
  EXPECT_NEAR(ratio(forward(40'000, 1, 2), forward(20'000, 1, 2)), 2, 0.01);
  EXPECT_NEAR(ratio(forward(20'000, 2, 2), forward(20'000, 1, 2)), 2, 0.05);
  EXPECT_NEAR(ratio(forward(20'000, 1, 4), forward(20'000, 1, 2)), 1.7, 0.15);
  const auto text = [&](int64_t tokens, int64_t bytes) {
    return TextEncodingBytes(real.text_encoder, tokens, bytes);
  };
  EXPECT_GT(ratio(text(512, 2), text(256, 2)), 2.2) << "scores grow with the square";
  EXPECT_LT(ratio(text(512, 2), text(256, 2)), 4);
  EXPECT_GT(ratio(text(512, 4), text(512, 2)), 1.5);
  EXPECT_LE(ratio(text(512, 4), text(512, 2)), 2);
  EXPECT_NEAR(ratio(TextConditioningBytes(real.transformer, 2, 2),
                    TextConditioningBytes(real.transformer, 1, 2)),
              2, 0.01);
  for (const bool encode : {false, true}) {
    SCOPED_TRACE(encode ? "encoding" : "decoding");
    const auto vae = [&](LatentSize size, int64_t bytes) {
      return encode ? EncodingBytes(real.vae, size, bytes) : DecodingBytes(real.vae, size, bytes);
    };
    EXPECT_NEAR(ratio(vae({3, 88, 80}, 4), vae({3, 44, 80}, 4)), 2, 0.02);
    EXPECT_NEAR(ratio(vae({3, 44, 160}, 4), vae({3, 44, 80}, 4)), 2, 0.02);
    EXPECT_GT(ratio(vae({3, 44, 80}, 4), vae({3, 44, 80}, 2)), 1.8);
    EXPECT_GT(vae({2, 44, 80}, 4), vae({1, 44, 80}, 4)) << "a later chunk has more frames";
    const auto in = [&](VaePrecision precision) {
      const LatentSize size{3, 44, 80};
      return encode ? EncodingBytes(real.vae, size, {precision, false})
                    : DecodingBytes(real.vae, size, {precision, false});
    };
    EXPECT_EQ(in(VaePrecision::kFp32), vae({3, 44, 80}, 4));
    // bf16 may take over. A decoded chunk of fp16 waits until its check is read.
    const uint64_t waiting = encode ? 0 : uint64_t{4} * 3 * 704 * 1280 * 2;
    EXPECT_GE(in(VaePrecision::kFp16), in(VaePrecision::kBf16) + waiting);
    EXPECT_LE(in(VaePrecision::kFp16), in(VaePrecision::kBf16) + waiting + waiting / 10);
    EXPECT_GT(in(VaePrecision::kFp16), vae({3, 44, 80}, 2)) << "its copy of the weights";
    EXPECT_LT(in(VaePrecision::kFp16), in(VaePrecision::kFp32));
    EXPECT_EQ(vae({3, 44, 80}, 4), vae({31, 44, 80}, 4))
        << "the memory does not grow with the video's length";
  }
}

}  // namespace
}  // namespace wan
