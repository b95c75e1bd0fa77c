// The memory of jobs that only decode latents, or compute only one expert's steps.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <memory>
#include <string>

#include "engine/planning/plan_memory.h"
#include "tests/engine/planning/plan_support.h"

namespace wan {
namespace {

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

TEST(LatentsMemoryTest, TheFilesTakeHostMemory) {
  const PlannedModel model = Published("ti2v-5b");
  const VideoShape shape{1280, 704, 121};
  GenerationRequest request = SizedRequest(shape.width, shape.height, shape.num_frames);
  request.latents = std::make_shared<const std::string>(size_t{20} << 20, ' ');
  request.strength = 0.5;
  const auto plan = PlanOn(model, request, LatentsOf(model, shape));
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_GE(StageOf(*plan, "TI2V_Preprocess").host_bytes, uint64_t{40} << 20);
}

}  // namespace
}  // namespace wan
