// Where weights live changes nothing of what comes out: the engine on the golden checkpoints, under
// every policy and under a limit.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <random>
#include <string>

#include "engine/api/errors.h"
#include "tests/engine/runtime/residency_fixture.h"

namespace wan {
namespace {

using testing::HasSubstr;
using Policy = ResidencyPolicy;

constexpr uint64_t kMiB = uint64_t{1} << 20;

TEST_F(ResidencyTest, EveryPolicyGivesTheSameLatents) {
  for (const char* const model : {"ti2v-5b", "t2v-a14b"}) {
    std::optional<std::string> expected;
    for (const Policy policy :
         {Policy::kResident, Policy::kHost, Policy::kStream, Policy::kDisk, Policy::kCpu}) {
      const auto engine = MakeEngine(Everywhere(policy));
      Load(*engine, "m", model);
      for (int job = 0; job < 2; ++job) {
        const auto latents = Latents(*engine, SmallRequest("m"));
        ASSERT_TRUE(latents.ok()) << latents.status();
        if (!expected.has_value()) expected = *latents;
        EXPECT_EQ(*latents, *expected)
            << model << ", " << ResidencyPolicyName(policy) << ", job " << job;
      }
    }
  }
}

TEST_F(ResidencyTest, WeightsInEightBitsGiveTheSameLatentsUnderEveryPolicy) {
  for (const char* const model : {"ti2v-5b", "t2v-a14b"}) {
    GenerationRequest request = SmallRequest("m");
    const auto whole = MakeEngine(Everywhere(Policy::kResident));
    Load(*whole, "m", model);
    const auto exact = Latents(*whole, request);
    ASSERT_TRUE(exact.ok()) << exact.status();
    request.quality = Quality::kHigh;
    const auto expected = Latents(*whole, request);
    ASSERT_TRUE(expected.ok()) << expected.status();
    EXPECT_NE(*expected, *exact);

    std::optional<std::string> with_text_encoder;
    for (const Policy policy :
         {Policy::kResident, Policy::kHost, Policy::kStream, Policy::kDisk, Policy::kCpu}) {
      SCOPED_TRACE(ResidencyPolicyName(policy));
      EngineOptions options;
      options.residency = Everywhere(policy);
      options.eight_bit_weights.transformers = true;
      const auto engine = MakeEngineWith(options);
      Load(*engine, "m", model);
      EXPECT_EQ(engine->Models().front().components[1].dtype, "e4m3");
      request.quality.reset();
      EXPECT_EQ(*Latents(*engine, request), *expected);
      request.quality = Quality::kExact;
      EXPECT_EQ(Latents(*engine, request).status().code(), absl::StatusCode::kInvalidArgument);
      request.quality.reset();
      options.eight_bit_weights.text_encoder = true;
      const auto both = MakeEngineWith(options);
      Load(*both, "m", model);
      const auto latents = Latents(*both, request);
      ASSERT_TRUE(latents.ok()) << latents.status();
      if (!with_text_encoder.has_value()) with_text_encoder = *latents;
      EXPECT_EQ(*latents, *with_text_encoder);
      EXPECT_NE(*latents, *expected) << "the text encoder rounds nothing";
    }
  }
}

TEST_F(ResidencyTest, WeightsAreOnTheDeviceOnlyWhileTheyWork) {
  const auto engine = MakeEngine({{ModelComponent::kTextEncoder, Policy::kHost},
                                  {ModelComponent::kTransformer, Policy::kStream},
                                  {ModelComponent::kVae, Policy::kResident}});
  Load(*engine, "m", "ti2v-5b");
  for (int job = 0; job < 2; ++job) {
    EXPECT_EQ(samples_.bytes["m/text_encoder"], 0);
    EXPECT_EQ(samples_.bytes["m/transformer"], 0);
    EXPECT_GT(samples_.bytes["m/vae"], 0);
    samples_.bytes.clear();
    ASSERT_TRUE(Latents(*engine, SmallRequest("m")).ok());
  }
}

TEST_F(ResidencyTest, AFileThatIsShortenedWhileItsWeightsAreOnDiskFailsTheJobAndNothingElse) {
  const std::filesystem::path checkpoint = folder_ / "checkpoint";
  std::filesystem::copy(CheckpointPath("ti2v-5b"), checkpoint,
                        std::filesystem::copy_options::recursive);
  std::filesystem::path largest;
  uintmax_t bytes = 0;
  for (const auto& entry : std::filesystem::directory_iterator(checkpoint)) {
    if (entry.path().extension() != ".safetensors" || entry.file_size() < bytes) continue;
    largest = entry.path();
    bytes = entry.file_size();
  }
  ASSERT_GT(bytes, 0u);
  const auto engine = MakeEngine(Everywhere(Policy::kDisk));
  Recorder recorder(SystemClock(), engine->Monitor(), {&samples_});
  const absl::Status loaded = engine->LoadModel({"m", checkpoint.string()}, recorder);
  ASSERT_TRUE(loaded.ok()) << loaded;
  for (const auto& [component, held] : samples_.bytes) EXPECT_EQ(held, 0) << component;
  const auto expected = Latents(*engine, SmallRequest("m"));
  ASSERT_TRUE(expected.ok()) << expected.status();

  const std::filesystem::path whole = folder_ / "whole";
  std::filesystem::copy(largest, whole);
  std::filesystem::resize_file(largest, bytes / 2);
  const auto failed = Latents(*engine, SmallRequest("m"));
  EXPECT_EQ(failed.status().code(), absl::StatusCode::kDataLoss) << failed.status();
  EXPECT_THAT(std::string(failed.status().message()), HasSubstr(largest.string()));
  // The same file, whole again.
  std::ofstream(largest, std::ios::binary | std::ios::in) << std::ifstream(whole).rdbuf();
  const auto again = Latents(*engine, SmallRequest("m"));
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(*again, *expected);
}

TEST_F(ResidencyTest, RandomRequestsOverRandomPoliciesGiveWhatResidentGives) {
  constexpr int kRequests = 200;
  constexpr int kEngines = 12;
  constexpr Policy kPolicies[] = {Policy::kAuto,   Policy::kResident, Policy::kHost,
                                  Policy::kStream, Policy::kDisk,     Policy::kCpu};
  std::mt19937 random(20261121);
  const auto pick = [&](int count) { return static_cast<int>(random() % count); };

  const auto reference = MakeEngine(Everywhere(Policy::kResident));
  Load(*reference, "ti2v-5b", "ti2v-5b");
  Load(*reference, "t2v-a14b", "t2v-a14b");
  std::vector<std::unique_ptr<Engine>> engines;
  for (int i = 0; i < kEngines; ++i) {
    std::vector<ComponentResidency> residency = Everywhere(Policy::kAuto);
    for (ComponentResidency& entry : residency) entry.policy = kPolicies[pick(6)];
    // Where it is tight, kAuto moves weights, and the models move each other's.
    const uint64_t limit = pick(2) == 0 ? 0 : 76 * kMiB;
    engines.push_back(MakeEngine(residency, limit));
    Load(*engines.back(), "ti2v-5b", "ti2v-5b");
    Load(*engines.back(), "t2v-a14b", "t2v-a14b");
  }
  int compared = 0;
  for (int i = 0; i < kRequests; ++i) {
    GenerationRequest request = SmallRequest(pick(2) == 0 ? "ti2v-5b" : "t2v-a14b");
    request.width = 32 * (1 + pick(3));
    request.height = 32 * (1 + pick(2));
    request.num_frames = 1 + 4 * pick(2);
    request.steps = 1 + pick(3);
    request.seed = pick(1000);
    if (request.model == "ti2v-5b" && pick(4) == 0) request.image = GoldenImage();
    if (pick(5) == 0) request.preview_interval = 1;
    Engine& engine = *engines[pick(kEngines)];
    const auto latents = Latents(engine, request);
    if (!latents.ok()) {
      // Planned away, never out of memory in the middle.
      EXPECT_EQ(latents.status().code(), absl::StatusCode::kInvalidArgument) << latents.status();
      continue;
    }
    // One batch of two rounds otherwise than two forwards, which is not the policies' doing.
    if (engine.Plan(request)->batched_guidance != reference->Plan(request)->batched_guidance) {
      continue;
    }
    const auto expected = Latents(*reference, request);
    ASSERT_TRUE(expected.ok()) << expected.status();
    EXPECT_TRUE(*latents == *expected) << "request " << i;
    ++compared;
  }
  EXPECT_GE(compared, kRequests * 3 / 4);
}

TEST_F(ResidencyTest, ModelsMakeRoomForEachOther) {
  const auto free = MakeEngine({});
  Load(*free, "a", "ti2v-5b");
  const auto plan = free->Plan(SmallRequest("a"));
  ASSERT_TRUE(plan.ok()) << plan.status();
  const double weights =
      samples_.bytes["a/text_encoder"] + samples_.bytes["a/transformer"] + samples_.bytes["a/vae"];
  samples_.bytes.clear();

  // One job fits with its weights, but not another model's beside it.
  const auto tight = MakeEngine({}, plan->peak_device_bytes + static_cast<uint64_t>(weights / 2));
  Load(*tight, "a", "ti2v-5b");
  Load(*tight, "b", "ti2v-5b");
  for (const char* const model : {"a", "b", "b", "a"}) {
    ASSERT_TRUE(Latents(*tight, SmallRequest(model)).ok());
    double held = 0;
    for (const auto& [component, bytes] : samples_.bytes) held += bytes;
    EXPECT_LT(held, 1.6 * weights) << "after a job of " << model;
    EXPECT_GT(samples_.bytes[std::string(model) + "/transformer"], 0);
  }
}

TEST_F(ResidencyTest, WhatNeverLeavesTheDeviceIsNoRoomForOthers) {
  const auto free = MakeEngine({});
  Load(*free, "a", "ti2v-5b");
  const uint64_t peak = free->Plan(SmallRequest("a"))->peak_device_bytes;
  const auto tight = MakeEngine(Everywhere(Policy::kResident), peak + kMiB);
  Load(*tight, "a", "ti2v-5b");
  EXPECT_TRUE(Latents(*tight, SmallRequest("a")).ok());
  Load(*tight, "b", "ti2v-5b");
  const auto refused = tight->Plan(SmallRequest("b"));
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(FieldViolationsOf(refused.status())[0].description, HasSubstr("of device memory"));
}

}  // namespace
}  // namespace wan
