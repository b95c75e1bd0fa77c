// What a job adds to the host's memory is part of its plan, and more than there is is refused.
#include "engine/planning/host_memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "engine/api/errors.h"
#include "engine/media/writer_memory.h"
#include "tests/engine/planning/plan_support.h"

namespace wan {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using Policy = ResidencyPolicy;

absl::StatusOr<GenerationPlan> PlanOn(const PlannedModel& model, const GenerationRequest& request,
                                      const PlanLimits& limits) {
  return PlanOn(model, request, GoodTexts(), limits);
}

PlanLimits Limits(uint64_t device_bytes, uint64_t host_bytes) {
  PlanLimits limits{device_bytes, {}};
  limits.host.available_bytes = host_bytes;
  return limits;
}

// What three savepoints of the latents and three tensors more take, in fp32.
uint64_t SavepointBytes(const GenerationPlan& plan) {
  uint64_t bytes = 3 * 4 * sizeof(float);
  for (const int64_t size : plan.latent_shape) bytes *= static_cast<uint64_t>(size);
  return bytes;
}

// What all frames take that may wait for the encoder, beyond the fewest.
uint64_t QueueBytes(uint64_t pixels, int frames) {
  return pixels * 3 * static_cast<uint64_t>(frames - kLeastQueuedFrames);
}

// Seen: the kernel ended a server in a container of 30 GiB that parked two experts.
TEST(HostMemoryTest, AJobThatWouldParkMoreThanTheContainerLeavesIsRefusedWithWhatFits) {
  const PlannedModel model = Published("t2v-a14b");
  // The card has no room for a whole expert, so that its weights must wait on the host.
  const PlanLimits container = Limits(22 * kGiB, 56 * kGiB);
  const GenerationRequest large = SizedRequest(1920, 1088, 81);
  const auto roomy = PlanOn(model, large, Limits(76 * kGiB, 200 * kGiB));
  ASSERT_TRUE(roomy.ok()) << roomy.status();
  EXPECT_GT(roomy->peak_host_bytes, 20 * kGiB) << "two experts do not fit the card beside it";

  // Less of it is enough where other components wait there.
  const auto modest = PlanOn(model, large, Limits(76 * kGiB, 20 * kGiB));
  ASSERT_TRUE(modest.ok()) << modest.status();
  EXPECT_LE(modest->peak_host_bytes, 20 * kGiB);

  const std::string text = Shortage(PlanOn(model, large, container));
  EXPECT_THAT(text, HasSubstr("a video of 1920x1088 and 81 frames needs "));
  EXPECT_THAT(text, HasSubstr(" of host memory in "));
  EXPECT_THAT(text, HasSubstr("of it for weights that wait there); 56.0 GiB is available"));
  int frames = 0;
  const size_t at = text.find("At this size ");
  ASSERT_NE(at, std::string::npos) << text;
  ASSERT_EQ(std::sscanf(text.c_str() + at, "At this size at most %d frames fit.", &frames), 1);
  EXPECT_TRUE(PlanOn(model, SizedRequest(1920, 1088, frames), container).ok());
  EXPECT_FALSE(PlanOn(model, SizedRequest(1920, 1088, frames + 4), container).ok());
  EXPECT_FALSE(PlanOn(model, SizedRequest(1920, 1088, 1), Limits(22 * kGiB, 30 * kGiB)).ok());
}

Policy PolicyIn(const GenerationPlan& plan, size_t component) {
  return plan.residency[component].policy;
}

// Where parking does not fit, weights are read again; only where even that does not fit, the job is
// refused.
TEST(HostMemoryTest, AutoReadsWeightsAgainWhereTheHostHasNoRoomForThem) {
  const PlannedModel model = Published("t2v-a14b");
  const GenerationRequest large = SizedRequest(1920, 1088, 81);
  const auto roomy = PlanOn(model, large, Limits(76 * kGiB, 200 * kGiB));
  ASSERT_TRUE(roomy.ok()) << roomy.status();
  for (size_t i = 0; i < model.components.size(); ++i) {
    EXPECT_NE(PolicyIn(*roomy, i), Policy::kDisk) << "it moves more bytes";
  }
  const auto tight = PlanOn(model, large, Limits(76 * kGiB, 8 * kGiB));
  ASSERT_TRUE(tight.ok()) << tight.status();
  EXPECT_LE(tight->peak_host_bytes, 8 * kGiB);
  EXPECT_LE(tight->peak_device_bytes, 76 * kGiB);
  int on_disk = 0;
  for (size_t i = 0; i < model.components.size(); ++i) {
    on_disk += PolicyIn(*tight, i) == Policy::kDisk ? 1 : 0;
  }
  EXPECT_GE(on_disk, 1);
  // Reading passes through locked buffers, and frames wait for the file.
  EXPECT_GE(tight->peak_host_bytes, uint64_t{256} << 20);
  const auto refused = PlanOn(model, large, Limits(76 * kGiB, uint64_t{200} << 20));
  EXPECT_THAT(Shortage(refused), HasSubstr(" of host memory in "));

  PlannedModel configured = model;
  for (PlannedComponent& component : configured.components) component.policy = Policy::kDisk;
  const auto plan = PlanOn(configured, large, Limits(76 * kGiB, 8 * kGiB));
  ASSERT_TRUE(plan.ok()) << plan.status();
  constexpr uint64_t kBuffers = uint64_t{256} << 20;
  EXPECT_EQ(StageOf(*plan, "T5_Encoding").host_bytes, kBuffers);
  EXPECT_EQ(StageOf(*plan, "Step_0_Inference").host_bytes, kBuffers + SavepointBytes(*plan));
  EXPECT_EQ(StageOf(*plan, "Step_0_Inference").weight_bytes, model.components[1].bytes);
  EXPECT_FALSE(plan->prefetch_experts) << "the host reads, and queues nothing meanwhile";
}

TEST(HostMemoryTest, CopiesThatAreThereCostNothing) {
  PlannedModel model = Published("t2v-a14b");
  for (PlannedComponent& component : model.components) component.policy = Policy::kHost;
  const GenerationRequest request = SizedRequest(832, 480, 81);
  PlanLimits limits = Limits(76 * kGiB, 8 * kGiB);
  EXPECT_FALSE(PlanOn(model, request, limits).ok());
  for (const PlannedComponent& component : model.components) {
    limits.host.copies.push_back(component.bytes);
  }
  const auto plan = PlanOn(model, request, limits);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(StageOf(*plan, "Step_0_Inference").host_bytes, SavepointBytes(*plan));
  // The frames on their way to the file remain.
  EXPECT_GT(plan->peak_host_bytes, uint64_t{832 * 480 * 3});
  EXPECT_EQ(plan->peak_host_bytes, StageOf(*plan, "VAE_Decoding").host_bytes);
}

TEST(HostMemoryTest, OtherModelsThatMakeRoomCount) {
  PlannedModel model = Published("ti2v-5b");
  for (PlannedComponent& component : model.components) component.policy = Policy::kResident;
  const GenerationRequest request = SizedRequest(832, 480, 81);
  PlanLimits limits = Limits(40 * kGiB, 20 * kGiB);
  const auto alone = PlanOn(model, request, limits);
  ASSERT_TRUE(alone.ok()) << alone.status();
  // Two models: one leaves the device and that is enough.
  limits.host.others = {{16 * kGiB, 15 * kGiB}, {1 * kGiB, 1 * kGiB}};
  const auto beside = PlanOn(model, request, limits);
  ASSERT_TRUE(beside.ok()) << beside.status();
  EXPECT_EQ(StageOf(*beside, "Step_0_Inference").host_bytes,
            StageOf(*alone, "Step_0_Inference").host_bytes + 15 * kGiB);
  limits.host.available_bytes = 15 * kGiB;
  EXPECT_FALSE(PlanOn(model, request, limits).ok());
}

// Abuse d: 1024x1024x121 in a control group of 650 MB was accepted and killed.
TEST(HostMemoryTest, OnACpuTheWholeJobIsHostMemory) {
  PlannedModel model = Published("ti2v-tiny");
  const GenerationRequest request = SizedRequest(1024, 1024, 121);
  PlanLimits limits = Limits(64 * kGiB, 0);
  limits.host.is_device = true;
  const auto plan = PlanOn(model, request, limits);
  ASSERT_TRUE(plan.ok()) << plan.status();
  const StagePlan& decoding = StageOf(*plan, "VAE_Decoding");
  EXPECT_GE(decoding.host_bytes, decoding.weight_bytes + decoding.activation_bytes);
  limits.host.weights_on_device = decoding.weight_bytes;
  const auto loaded = PlanOn(model, request, limits);
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_EQ(StageOf(*loaded, "VAE_Decoding").host_bytes,
            decoding.host_bytes - decoding.weight_bytes);

  limits.host.available_bytes = loaded->peak_host_bytes / 8;
  EXPECT_THAT(Shortage(PlanOn(model, request, limits)), HasSubstr("of host memory in "));
}

TEST(HostMemoryTest, AVideoThatIsDecodedInTilesWaitsOnTheHost) {
  PlannedModel model = Published("ti2v-5b");
  const GenerationRequest request = SizedRequest(1280, 704, 121);
  const auto tiled = PlanOn(model, request, Limits(8 * kGiB, 400 * kGiB));
  ASSERT_TRUE(tiled.ok()) << tiled.status();
  ASSERT_FALSE(tiled->decode_tiles.IsWhole());
  const auto whole = PlanOn(model, request, Limits(40 * kGiB, 400 * kGiB));
  ASSERT_TRUE(whole.ok()) << whole.status();
  ASSERT_TRUE(whole->decode_tiles.IsWhole());
  constexpr uint64_t kVideo = uint64_t{1280} * 704 * 121 * 12;
  // Whole frames have a longer queue instead.
  EXPECT_EQ(tiled->queued_frames, kLeastQueuedFrames);
  EXPECT_EQ(StageOf(*tiled, "VAE_Decoding").host_bytes - StageOf(*tiled, "T5_Encoding").host_bytes,
            StageOf(*whole, "VAE_Decoding").host_bytes - QueueBytes(1280 * 704, 121) + kVideo);
}

// On a machine with few processors the encoder is the slower one, and a GPU should not wait for it.
TEST(HostMemoryTest, AllFramesMayWaitForTheEncoderWhereTheHostHasRoom) {
  PlannedModel model = Published("ti2v-5b");
  for (PlannedComponent& component : model.components) component.policy = Policy::kResident;
  const GenerationRequest request = SizedRequest(1280, 704, 121);
  const auto roomy = PlanOn(model, request, Limits(0, 100 * kGiB));
  ASSERT_TRUE(roomy.ok()) << roomy.status();
  EXPECT_EQ(roomy->queued_frames, 121);
  EXPECT_EQ(roomy->peak_host_bytes, StageOf(*roomy, "VAE_Decoding").host_bytes);

  // It is no reason to refuse the job, and what it would take is what the plan says.
  const auto enough = PlanOn(model, request, Limits(0, roomy->peak_host_bytes));
  ASSERT_TRUE(enough.ok()) << enough.status();
  EXPECT_EQ(enough->queued_frames, 121);
  const auto short_of_it = PlanOn(model, request, Limits(0, roomy->peak_host_bytes - 1));
  ASSERT_TRUE(short_of_it.ok()) << short_of_it.status();
  EXPECT_EQ(short_of_it->queued_frames, kLeastQueuedFrames);
  EXPECT_EQ(StageOf(*short_of_it, "VAE_Decoding").host_bytes,
            StageOf(*roomy, "VAE_Decoding").host_bytes - QueueBytes(1280 * 704, 121));
}

TEST(HostMemoryTest, TheEncodersQueueHasALimit) {
  const PlannedModel model = Published("ti2v-5b");
  const auto queued = [&](int width, int height, int frames) {
    const auto plan = PlanOn(model, SizedRequest(width, height, frames), Limits(0, 0));
    EXPECT_TRUE(plan.ok()) << plan.status();
    return plan.ok() ? plan->queued_frames : 0;
  };
  EXPECT_EQ(queued(1920, 1088, 121), 121);
  EXPECT_EQ(queued(1920, 1088, 241), static_cast<int>(kGiB / (1920 * 1088 * 3)));
  EXPECT_EQ(queued(1280, 704, 5), kLeastQueuedFrames);
}

TEST(HostMemoryTest, WhatComputesOnTheCpuHasItsActivationsThere) {
  PlannedModel model = Published("ti2v-5b");
  model.components[0].policy = Policy::kCpu;
  const auto plan = PlanOn(model, SizedRequest(832, 480, 81), Limits(60 * kGiB, 100 * kGiB));
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_GT(StageOf(*plan, "T5_Encoding").host_bytes, uint64_t{1} << 20);
  EXPECT_EQ(StageOf(*plan, "Step_0_Inference").host_bytes, SavepointBytes(*plan));
}

// Such a job may be larger than the card's room for the decoder.
TEST(HostMemoryTest, AJobThatEndsWithLatentsIsPlannedWithoutTheDecoder) {
  PlannedModel model = Published("ti2v-5b");
  for (PlannedComponent& component : model.components) component.policy = Policy::kHost;
  GenerationRequest request = SizedRequest(2048, 2048, 5);
  const auto latents_only = [&](uint64_t device) {
    GenerationRequest latents = request;
    latents.outputs = {OutputKind::kLatents};
    return PlanOn(model, latents, Limits(device, 0));
  };
  const auto latents = latents_only(64 * kGiB);
  ASSERT_TRUE(latents.ok()) << latents.status();
  const auto video = PlanOn(model, request, Limits(0, 0));
  ASSERT_TRUE(video.ok()) << video.status();
  EXPECT_LT(latents->peak_device_bytes, video->peak_device_bytes);
  const uint64_t just_enough = latents->peak_device_bytes;
  EXPECT_TRUE(latents_only(just_enough).ok());
  EXPECT_TRUE(latents->decode_tiles.IsWhole());

  // One tile's decoding may be the largest stage of all.
  model.components.back().bytes += 2 * just_enough;
  EXPECT_FALSE(PlanOn(model, request, Limits(just_enough, 0)).ok());
  EXPECT_TRUE(latents_only(just_enough).ok());
}

uint64_t BytesOf(const PlannedModel& model) {
  uint64_t bytes = 0;
  for (const PlannedComponent& component : model.components) bytes += component.bytes;
  return bytes;
}

PlannedModel WithPolicy(PlannedModel model, Policy policy) {
  for (PlannedComponent& component : model.components) component.policy = policy;
  return model;
}

uint64_t LargestOf(const PlannedModel& model) {
  uint64_t largest = 0;
  for (const PlannedComponent& component : model.components) {
    largest = std::max(largest, component.bytes);
  }
  return largest;
}

TEST(FitHostMemoryTest, WhatFitsStays) {
  const PlannedModel model = WithPolicy(Published("ti2v-5b"), Policy::kAuto);
  const std::vector<Policy> waiting(model.components.size(), Policy::kHost);
  for (const bool is_device : {false, true}) {
    std::vector<Policy> policies = waiting;
    // A CPU computes with a second copy of one component at a time.
    const uint64_t needed = BytesOf(model) + (is_device ? LargestOf(model) : 0);
    EXPECT_TRUE(FitHostMemory(model, {needed, is_device}, policies).ok());
    EXPECT_EQ(policies, waiting);
    EXPECT_TRUE(FitHostMemory(model, {needed - 1, is_device}, policies).ok());
    EXPECT_EQ(policies, std::vector<Policy>(model.components.size(), Policy::kDisk));
  }
}

TEST(FitHostMemoryTest, ResidentWeightsOfAGpuNeedNoHostMemoryAndThoseOfACpuDo) {
  const PlannedModel model = WithPolicy(Published("ti2v-5b"), Policy::kAuto);
  const std::vector<Policy> resident(model.components.size(), Policy::kResident);
  std::vector<Policy> policies = resident;
  EXPECT_TRUE(FitHostMemory(model, {1, false}, policies).ok());
  EXPECT_EQ(policies, resident);
  EXPECT_TRUE(FitHostMemory(model, {BytesOf(model), true}, policies).ok());
  EXPECT_EQ(policies, resident);
  EXPECT_TRUE(FitHostMemory(model, {BytesOf(model) - 1, true}, policies).ok());
  EXPECT_EQ(policies, std::vector<Policy>(model.components.size(), Policy::kDisk));
}

TEST(FitHostMemoryTest, ConfiguredPoliciesAreKeptAndTheRefusalSaysWhatIsMissing) {
  const PlannedModel model = WithPolicy(Published("ti2v-5b"), Policy::kHost);
  const std::vector<Policy> waiting(model.components.size(), Policy::kHost);
  std::vector<Policy> policies = waiting;
  const absl::Status refused = FitHostMemory(model, {4 * kGiB, false}, policies);
  EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition) << refused;
  EXPECT_EQ(ReasonOf(refused), "HOST_MEMORY_EXHAUSTED");
  EXPECT_THAT(
      std::string(refused.message()),
      AllOf(HasSubstr("the weights of text_encoder, transformer, vae need 22."),
            HasSubstr(" GiB of host memory, and 4.0 GiB is available"), HasSubstr("policy disk")));
  EXPECT_EQ(policies, waiting);
}

// On a CPU a job brings a component up even where its weights are read from disk.
TEST(FitHostMemoryTest, ACpuNeedsRoomForTheLargestComponent) {
  const PlannedModel model = WithPolicy(Published("ti2v-5b"), Policy::kAuto);
  const uint64_t largest = LargestOf(model);
  std::vector<Policy> policies(model.components.size(), Policy::kResident);
  const absl::Status refused = FitHostMemory(model, {largest - 1, true}, policies);
  EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition) << refused;
  EXPECT_EQ(ReasonOf(refused), "HOST_MEMORY_EXHAUSTED");
  EXPECT_THAT(std::string(refused.message()), HasSubstr("the largest component"));
  EXPECT_EQ(policies.front(), Policy::kResident);
  EXPECT_TRUE(FitHostMemory(model, {largest, true}, policies).ok());
}

// Measured on an H200's host of 16 processors by wan_bench encoder --memory, 90 frames.
TEST(WriterBytesTest, CoversWhatWasMeasured) {
  struct Measured {
    int width, height;
    uint64_t mebibytes;  // H.264
    uint64_t lossless;   // FFV1
  };
  for (const auto& [width, height, mebibytes, lossless] :
       {Measured{640, 352, 72, 39}, Measured{1280, 704, 373, 152},
        Measured{1920, 1088, 810, 349}}) {
    SCOPED_TRACE(width);
    const uint64_t planned = WriterBytes(int64_t{width} * height, height);
    EXPECT_GE(planned, std::max(mebibytes, lossless) << 20);
    EXPECT_LE(planned, (mebibytes + mebibytes / 2 + 8) << 20);
  }
}

// As libx264 takes them by itself on 16 processors.
TEST(WriterBytesTest, ThreadsFollowFromTheHeightAlone) {
  EXPECT_EQ(H264Threads(16), 1);
  EXPECT_EQ(H264Threads(64), 2);
  EXPECT_EQ(H264Threads(256), 8);
  EXPECT_EQ(H264Threads(704), 22);
  EXPECT_EQ(H264Threads(1088), 24);
}

// A photo of 48 megapixels is larger than what the video needs.
TEST(HostMemoryTest, AnImageCountsWhileItIsDecodedAndFitted) {
  GenerationRequest request = ImageRequest();
  request.size_is_exact = true;
  InspectedRequest photo = ImageOf(8000, 6000);
  const auto preprocess = [&](const char* model, const char* stage) {
    const auto plan = PlanOn(Published(model), request, photo, Limits(140 * kGiB, 0));
    EXPECT_TRUE(plan.ok()) << plan.status();
    EXPECT_GE(plan->peak_host_bytes, StageOf(*plan, stage).host_bytes);
    return StageOf(*plan, stage).host_bytes;
  };
  constexpr uint64_t kPixels = 8000 * 6000;
  // The pixels in RGB, resized in one direction, and in both.
  const uint64_t fitted = preprocess("ti2v-5b", "TI2V_Preprocess");
  EXPECT_GE(fitted, kPixels * 6);
  EXPECT_LE(fitted, kPixels * 9);
  // In fp32, before they are resized.
  EXPECT_EQ(preprocess("i2v-a14b", "I2V_Preprocess"), kPixels * 21);
  photo.image_decoding_bytes = 1'000'000'000;
  EXPECT_EQ(preprocess("ti2v-5b", "TI2V_Preprocess"), 1'000'000'000);
}

}  // namespace
}  // namespace wan
