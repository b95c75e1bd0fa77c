// The memory of jobs that only decode latents, or compute only one expert's steps.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "engine/planning/plan_memory.h"
#include "tests/engine/planning/plan_support.h"

namespace wan {
namespace {

using testing::ElementsAre;

GenerationRequest Decoded(GenerationRequest request) {
  request.latents = std::make_shared<const std::string>("the file");
  request.steps = 0;
  return request;
}

InspectedRequest LatentsOf(const PlannedModel& model, const VideoShape& shape) {
  InspectedRequest inspected = GoodTexts();
  inspected.latents = LatentShape(model, shape);
  return inspected;
}

// Tiles change the video's bits. Whatever the card, a job that decodes another one's latents must
// choose the same.
TEST(LatentsMemoryTest, LatentsAreDecodedInTheTilesOfTheJobThatMadeThem) {
  size_t tiled = 0;
  for (const char* name : {"ti2v-5b", "t2v-a14b"}) {
    const PlannedModel model = Published(name);
    for (const VideoShape& shape :
         {VideoShape{832, 480, 81}, VideoShape{1280, 704, 121}, VideoShape{2048, 1536, 81}}) {
      const GenerationRequest request = SizedRequest(shape.width, shape.height, shape.num_frames);
      for (uint64_t gib = 8; gib <= 64; gib += 2) {
        const auto whole = PlanOn(model, request, GoodTexts(), {gib * kGiB});
        if (!whole.ok()) continue;  // too large for this card
        const auto plan = PlanOn(model, Decoded(request), LatentsOf(model, shape), {gib * kGiB});
        ASSERT_TRUE(plan.ok()) << plan.status();
        EXPECT_EQ(plan->decode_tiles.rows, whole->decode_tiles.rows) << name << " " << gib;
        EXPECT_EQ(plan->decode_tiles.columns, whole->decode_tiles.columns) << name << " " << gib;
        if (!whole->decode_tiles.IsWhole()) ++tiled;
      }
    }
  }
  EXPECT_GT(tiled, 0U) << "otherwise the test shows nothing";
}

TEST(LatentsMemoryTest, OnlyStagesThatRunCount) {
  const PlannedModel model = Published("t2v-a14b");
  const VideoShape shape{832, 480, 81};
  const GenerationRequest request = SizedRequest(shape.width, shape.height, shape.num_frames);
  const auto plan = PlanOn(model, Decoded(request), LatentsOf(model, shape));
  ASSERT_TRUE(plan.ok()) << plan.status();
  const StagePlan& decoding = StageOf(*plan, "VAE_Decoding");
  EXPECT_EQ(plan->peak_device_bytes, decoding.weight_bytes + decoding.activation_bytes);
  // A card that is too small for the steps still decodes.
  uint64_t gib = 1;
  while (!PlanOn(model, request, GoodTexts(), {gib * kGiB}).ok()) ++gib;
  EXPECT_TRUE(PlanOn(model, Decoded(request), LatentsOf(model, shape), {(gib - 1) * kGiB}).ok());
}

// Returns the file of latents that a job of this size might begin with, `mib` large.
GenerationRequest Continued(GenerationRequest request, size_t mib) {
  request.latents = std::make_shared<const std::string>(mib << 20, ' ');
  request.strength = 0.5;
  return request;
}

TEST(LatentsMemoryTest, TheFilesTakeHostMemoryInEveryStage) {
  const PlannedModel model = Published("ti2v-5b");
  const VideoShape shape{1280, 704, 121};
  const GenerationRequest request = SizedRequest(shape.width, shape.height, shape.num_frames);
  const auto small = PlanOn(model, Continued(request, 0), LatentsOf(model, shape));
  const auto large = PlanOn(model, Continued(request, 20), LatentsOf(model, shape));
  ASSERT_TRUE(small.ok() && large.ok()) << large.status();
  const auto added = [&](const std::string& stage) {
    return (StageOf(*large, stage).host_bytes - StageOf(*small, stage).host_bytes) >> 20;
  };
  EXPECT_EQ(added("TI2V_Preprocess"), 20);
  EXPECT_EQ(added("T5_Encoding"), 20);
  EXPECT_EQ(added("Step_0_Inference"), 20 + 3 * 20) << "they are read before the first step";
  EXPECT_EQ(added("VAE_Decoding"), 20);
  EXPECT_EQ(large->peak_host_bytes - small->peak_host_bytes, uint64_t{20} << 20)
      << "the decoded frames take most";
  GenerationRequest decoded = Decoded(request);
  decoded.latents = std::make_shared<const std::string>(size_t{20} << 20, ' ');
  const auto only = PlanOn(model, decoded, LatentsOf(model, shape));
  ASSERT_TRUE(only.ok()) << only.status();
  EXPECT_EQ(StageOf(*only, "TI2V_Preprocess").host_bytes >> 20, 20 + 3 * 20);
}

// On a card with room for all but one component the one goes that this job does not use, even if it
// is the largest.
TEST(LatentsMemoryTest, ComponentsWithoutWorkLeaveTheDeviceFirst) {
  const PlannedModel model = Published("t2v-a14b");
  const VideoShape shape{832, 480, 81};
  const GenerationRequest request = SizedRequest(shape.width, shape.height, shape.num_frames);
  const auto all = PlanOn(model, request);
  ASSERT_TRUE(all.ok()) << all.status();
  const PlanLimits card{all->peak_device_bytes - kGiB};
  const auto moved = [](const GenerationPlan& plan) {
    std::vector<ModelComponent> components;
    for (const ComponentResidency& entry : plan.residency) {
      if (entry.policy != ResidencyPolicy::kResident) components.push_back(entry.component);
    }
    return components;
  };
  const auto whole = PlanOn(model, request, GoodTexts(), card);
  ASSERT_TRUE(whole.ok()) << whole.status();
  EXPECT_THAT(moved(*whole), ElementsAre(ModelComponent::kTextEncoder));

  GenerationRequest continued = Continued(request, 1);
  continued.strength = 0.3;
  const auto low = PlanOn(model, continued, LatentsOf(model, shape), card);
  ASSERT_TRUE(low.ok()) << low.status();
  ASSERT_EQ(low->steps.front().expert, ExpertRole::kLowNoise);
  EXPECT_THAT(moved(*low), ElementsAre(ModelComponent::kTransformer));
  EXPECT_FALSE(low->prefetch_experts);

  const auto decoded = PlanOn(model, Decoded(request), LatentsOf(model, shape), card);
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  EXPECT_THAT(moved(*decoded), ElementsAre(ModelComponent::kTextEncoder))
      << "the smallest of those without work that makes enough room";
}

TEST(LatentsMemoryTest, AnExpertThatComesAloneIsNotPrefetched) {
  PlannedModel model = Published("t2v-a14b");
  for (PlannedComponent& component : model.components) component.policy = ResidencyPolicy::kHost;
  const VideoShape shape{832, 480, 81};
  GenerationRequest request =
      Continued(SizedRequest(shape.width, shape.height, shape.num_frames), 1);
  request.strength = 1;
  EXPECT_TRUE(PlanOn(model, request, LatentsOf(model, shape))->prefetch_experts);
  request.strength = 0.3;
  EXPECT_FALSE(PlanOn(model, request, LatentsOf(model, shape))->prefetch_experts);
}

}  // namespace
}  // namespace wan
