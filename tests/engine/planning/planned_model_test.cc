// What weights will take of a device, from dimensions alone, is what the loaders then take.
#include "engine/planning/planned_model.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/costs/allocator_rounding.h"
#include "engine/models/wan/transformer.h"
#include "engine/models/wan/umt5.h"
#include "engine/models/wan/vae.h"
#include "engine/planning/host_memory.h"
#include "engine/weights/component_weights.h"

namespace wan {
namespace {

std::shared_ptr<ComponentWeights> OnHost() {
  return std::make_shared<ComponentWeights>(MakeWeightMover(at::kCPU),
                                            ComponentWeights::Home::kHost);
}

// The golden models are so small that the allocator rounds none of their tensors to more than the
// weights' own alignment.
void ExpectSizes(const PlannedComponent& planned, const ComponentWeights& loaded) {
  const WeightSizes sizes = loaded.Sizes();
  EXPECT_EQ(planned.bytes, static_cast<uint64_t>(sizes.total));
  EXPECT_EQ(planned.base_bytes, static_cast<uint64_t>(sizes.base));
  EXPECT_EQ(planned.group_bytes, static_cast<uint64_t>(sizes.largest_group));
}

TEST(PlannedModelTest, WeightsTakeWhatTheirLoadersAskFor) {
  for (const char* const name : {"ti2v-5b", "t2v-a14b", "i2v-a14b"}) {
    SCOPED_TRACE(name);
    const auto checkpoint =
        Checkpoint::Open(std::string(WAN_CHECKPOINT_DIR) + "/" + name + "/original");
    ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
    for (const auto& [dtype, eight_bits] :
         {std::pair(at::kFloat, EightBitWeights{}), std::pair(at::kBFloat16, EightBitWeights{}),
          std::pair(at::kFloat, EightBitWeights{.transformers = true}),
          std::pair(at::kBFloat16, EightBitWeights{.text_encoder = true})}) {
      const PlannedModel model =
          PlanCheckpoint(**checkpoint, static_cast<int64_t>(at::elementSize(dtype)),
                         {.eight_bit_weights = eight_bits,
                          .quality_exact_blocks = ExactBlocks::Parse("last").value()});
      std::shared_ptr<ComponentWeights> weights = OnHost();
      ASSERT_TRUE(
          LoadUmt5(
              (*checkpoint)->text_encoder(), (*checkpoint)->text_encoder_config(),
              {.dtype = dtype, .weights = weights, .eight_bit_weights = eight_bits.text_encoder})
              .ok());
      ExpectSizes(model.components.front(), *weights);
      for (int i = 0; i < (*checkpoint)->num_experts(); ++i) {
        weights = OnHost();
        ASSERT_TRUE(LoadWanTransformer((*checkpoint)->transformer(i),
                                       (*checkpoint)->transformer_config(i),
                                       {.dtype = dtype,
                                        .weights = weights,
                                        .eight_bit_weights = eight_bits.transformers,
                                        .exact_blocks = model.ExactBlocks()})
                        .ok());
        ExpectSizes(model.components[1 + i], *weights);
      }
      weights = OnHost();
      ASSERT_TRUE(
          LoadWanVae((*checkpoint)->vae(), (*checkpoint)->vae_config(), {.weights = weights}).ok());
      ExpectSizes(model.components.back(), *weights);
    }
  }
}

TEST(PlannedModelTest, PublishedModelsWeighWhatTheirParametersDo) {
  constexpr double kMiB = 1 << 20;
  const auto checkpoint = Checkpoint::Open("synthetic:t2v-a14b");
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  const PlannedModel model = PlanCheckpoint(
      **checkpoint, 2, {.residency = {{ModelComponent::kVae, ResidencyPolicy::kHost}}});
  ASSERT_EQ(model.components.size(), 4u);
  const PlannedComponent& expert = model.components[1];
  EXPECT_EQ(expert.component, ModelComponent::kTransformer);
  EXPECT_EQ(expert.policy, ResidencyPolicy::kAuto);
  // 14,288,491,584 parameters in bf16, a few of them in fp32, and what the allocator rounds.
  EXPECT_NEAR(static_cast<double>(expert.bytes) / kMiB, 27'850, 150);
  EXPECT_LT(static_cast<double>(expert.base_bytes) / kMiB, 800);
  // One block without the keys and values of the text.
  EXPECT_NEAR(static_cast<double>(expert.group_bytes) / kMiB, 570, 10);
  EXPECT_EQ(model.components.back().policy, ResidencyPolicy::kHost);
}

TEST(PlannedModelTest, EightBitsHalveWhatPublishedModelsWeigh) {
  constexpr double kMiB = 1 << 20;
  const auto checkpoint = Checkpoint::Open("synthetic:t2v-a14b");
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  const PlannedModel model = PlanCheckpoint(
      **checkpoint, 2, {.eight_bit_weights = {.transformers = true, .text_encoder = true}});
  EXPECT_NEAR(static_cast<double>(model.components[0].bytes) / kMiB, 5'420, 60);
  // Half of a block, and the keys and values of the text, which stay in bf16.
  EXPECT_NEAR(static_cast<double>(model.components[1].group_bytes) / kMiB, 286, 6);
  EXPECT_NEAR(static_cast<double>(model.components[1].bytes) / kMiB, 16'500, 200);
}

TEST(PlannedModelTest, WeightsThatTheHostHasNoRoomForAreRefused) {
  using Policy = ResidencyPolicy;
  const auto checkpoint = Checkpoint::Open("synthetic:t2v-a14b");
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  const PlannedModel model = PlanCheckpoint(**checkpoint, 2, {});
  const std::vector<Policy> policies = {Policy::kCpu, Policy::kStream, Policy::kHost,
                                        Policy::kResident};
  const uint64_t needed =
      model.components[0].bytes + model.components[1].bytes + model.components[2].bytes;
  EXPECT_TRUE(CheckHostMemory(model, policies, {needed, false}).ok());
  const absl::Status refused = CheckHostMemory(model, policies, {needed - 1, false});
  EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(std::string(refused.message().substr(0, 61)),
            "the weights of text_encoder, transformer, transformer_2 need ");
  const std::vector<Policy> all_there(4, Policy::kResident);
  EXPECT_TRUE(CheckHostMemory(model, all_there, {0, false}).ok());

  // An expert that a LoRA changes has a copy there, whatever its policy.
  PlannedModel adapted = model;
  adapted.loras = {{"low", {std::nullopt, LoraFootprint{}}, /*host_bytes=*/1000}};
  const uint64_t copy = adapted.components[2].bytes;
  EXPECT_TRUE(CheckHostMemory(adapted, all_there, {copy + 1000, false}).ok());
  EXPECT_FALSE(CheckHostMemory(adapted, all_there, {copy + 999, false}).ok());
  const std::vector<Policy> computes = {Policy::kResident, Policy::kResident, Policy::kCpu,
                                        Policy::kResident};
  EXPECT_TRUE(CheckHostMemory(adapted, computes, {2 * copy + 1000, false}).ok());
  EXPECT_FALSE(CheckHostMemory(adapted, computes, {2 * copy + 999, false}).ok());
  const std::vector<Policy> waits = {Policy::kResident, Policy::kResident, Policy::kStream,
                                     Policy::kResident};
  EXPECT_TRUE(CheckHostMemory(adapted, waits, {copy + 1000, false}).ok()) << "it is the copy";
  EXPECT_FALSE(CheckHostMemory(adapted, waits, {copy + 999, false}).ok());
}

TEST(AllocatedBytesTest, RoundsAsTheAllocatorDoes) {
  EXPECT_EQ(AllocatedBytes(0), 0);
  EXPECT_EQ(AllocatedBytes(1), 512);
  EXPECT_EQ(AllocatedBytes(9 << 20), 9 << 20);
  EXPECT_EQ(AllocatedBytes((10 << 20) + 1), 12 << 20);
}

}  // namespace
}  // namespace wan
