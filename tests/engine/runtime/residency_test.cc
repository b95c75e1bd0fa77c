// Where weights live changes nothing of what comes out: the engine on the golden checkpoints, under
// every policy, under a limit, and where memory ends.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <sstream>

#include "engine/api/engine_factory.h"
#include "engine/api/errors.h"
#include "tests/support/failing_allocator.h"

namespace wan {
namespace {

using testing::HasSubstr;
using Policy = ResidencyPolicy;

constexpr uint64_t kMiB = uint64_t{1} << 20;

class SampleSink final : public TelemetrySink {
 public:
  void OnSample(const Sample& sample) override {
    if (sample.name == "component_memory_bytes") {
      bytes[sample.labels.at("model") + "/" + sample.labels.at("component")] = sample.value;
    }
  }
  std::map<std::string, double> bytes;  // the last value of each
};

std::string CheckpointPath(const std::string& name) {
  return std::string(WAN_CHECKPOINT_DIR) + "/" + name + "/original";
}

std::vector<ComponentResidency> Everywhere(Policy policy) {
  return {{"text_encoder", policy},
          {"transformer", policy},
          {"transformer_2", policy},
          {"vae", policy}};
}

class ResidencyTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::path(testing::TempDir()) /
              ("residency_" + std::to_string(getpid()) +
               testing::UnitTest::GetInstance()->current_test_info()->name());
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  static std::unique_ptr<Engine> MakeEngine(const std::vector<ComponentResidency>& residency,
                                            uint64_t limit = 0) {
    EngineOptions options;
    options.residency = residency;
    options.device_memory_limit = limit;
    absl::StatusOr<std::unique_ptr<Engine>> engine = MakeWanEngine(options);
    EXPECT_TRUE(engine.ok()) << engine.status();
    return *std::move(engine);
  }

  void Load(Engine& engine, const std::string& name, const std::string& checkpoint) {
    Recorder recorder(SystemClock(), engine.Monitor(), {&samples_});
    const absl::Status status = engine.LoadModel({name, CheckpointPath(checkpoint)}, recorder);
    ASSERT_TRUE(status.ok()) << status;
  }

  static GenerationRequest SmallRequest(const std::string& model) {
    GenerationRequest request;
    request.model = model;
    request.prompt = "A red cat.";
    request.width = 64;
    request.height = 32;
    request.num_frames = 5;
    request.steps = 3;
    request.seed = 3;
    return request;
  }

  // The bytes of the latents file.
  absl::StatusOr<std::string> Latents(Engine& engine, const GenerationRequest& request,
                                      TelemetrySink* sink = nullptr) {
    absl::StatusOr<GenerationPlan> plan = engine.Plan(request);
    if (!plan.ok()) return plan.status();
    std::vector<TelemetrySink*> sinks = {&samples_};
    if (sink != nullptr) sinks.push_back(sink);
    Recorder recorder(SystemClock(), engine.Monitor(), sinks);
    GenerationObserver observer;
    const std::vector<OutputFile> outputs = {{OutputKind::kLatents, folder_ / "latents"},
                                             {OutputKind::kLosslessMkv, folder_ / "video.mkv"}};
    absl::Status status = engine.Generate(*plan, outputs, recorder, observer, {});
    if (!status.ok()) return status;
    std::ifstream in(outputs[0].path, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(in), {});
  }

  std::filesystem::path folder_;
  SampleSink samples_;
};

std::shared_ptr<const std::string> GoldenImage() {
  std::ifstream file(WAN_GOLDEN_DIR "/pipelines/ti2v-i2v.png", std::ios::binary);
  std::ostringstream bytes;
  bytes << file.rdbuf();
  return std::make_shared<const std::string>(bytes.str());
}

TEST_F(ResidencyTest, EveryPolicyGivesTheSameLatents) {
  for (const char* const model : {"ti2v-5b", "t2v-a14b"}) {
    std::optional<std::string> expected;
    for (const Policy policy : {Policy::kResident, Policy::kHost, Policy::kStream, Policy::kCpu}) {
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

TEST_F(ResidencyTest, WeightsAreOnTheDeviceOnlyWhileTheyWork) {
  const auto engine = MakeEngine({{"text_encoder", Policy::kHost},
                                  {"transformer", Policy::kStream},
                                  {"vae", Policy::kResident}});
  Load(*engine, "m", "ti2v-5b");
  for (int job = 0; job < 2; ++job) {
    EXPECT_EQ(samples_.bytes["m/text_encoder"], 0);
    EXPECT_EQ(samples_.bytes["m/transformer"], 0);
    EXPECT_GT(samples_.bytes["m/vae"], 0);
    samples_.bytes.clear();
    ASSERT_TRUE(Latents(*engine, SmallRequest("m")).ok());
  }
}

TEST_F(ResidencyTest, RandomRequestsOverRandomPoliciesGiveWhatResidentGives) {
  constexpr int kRequests = 80;
  constexpr int kEngines = 12;
  constexpr Policy kPolicies[] = {Policy::kAuto, Policy::kResident, Policy::kHost, Policy::kStream,
                                  Policy::kCpu};
  std::mt19937 random(20261121);
  const auto pick = [&](int count) { return static_cast<int>(random() % count); };

  const auto reference = MakeEngine(Everywhere(Policy::kResident));
  Load(*reference, "ti2v-5b", "ti2v-5b");
  Load(*reference, "t2v-a14b", "t2v-a14b");
  std::vector<std::unique_ptr<Engine>> engines;
  for (int i = 0; i < kEngines; ++i) {
    std::vector<ComponentResidency> residency = Everywhere(Policy::kAuto);
    for (ComponentResidency& entry : residency) entry.policy = kPolicies[pick(5)];
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

// Every allocation of every stage fails once, and the job after it is as if nothing had been.
class OutOfMemoryTest : public ResidencyTest {
 protected:
  void FailEverywhere(const std::vector<ComponentResidency>& residency,
                      const GenerationRequest& request, const std::string& checkpoint,
                      const std::vector<std::string>& stages) {
    FailingAllocator allocator;
    const auto engine = MakeEngine(residency);
    Load(*engine, "m", checkpoint);
    const auto expected = Latents(*engine, request);
    ASSERT_TRUE(expected.ok()) << expected.status();
    for (const std::string& stage : stages) {
      StageFault count(allocator, stage, StageFault::kNever);
      ASSERT_TRUE(Latents(*engine, request, &count).ok());
      ASSERT_EQ(count.spans(), 1) << stage;
      ASSERT_GT(count.allocations(), 0) << stage;
      for (int64_t n = 1; n <= count.allocations(); ++n) {
        StageFault fault(allocator, stage, n);
        const auto failed = Latents(*engine, request, &fault);
        allocator.Disarm();
        EXPECT_TRUE(allocator.failed()) << stage << " " << n;
        EXPECT_EQ(failed.status().code(), absl::StatusCode::kResourceExhausted)
            << stage << " " << n << ": " << failed.status();
        EXPECT_EQ(ReasonOf(failed.status()), "OUT_OF_MEMORY") << stage << " " << n;
        const auto next = Latents(*engine, request);
        ASSERT_TRUE(next.ok()) << "after " << stage << " " << n << ": " << next.status();
        ASSERT_TRUE(*next == *expected) << "after " << stage << " " << n;
      }
    }
  }

  static GenerationRequest Tiny() {
    GenerationRequest request = SmallRequest("m");
    request.width = 32;
    request.height = 32;
    request.steps = 2;
    return request;
  }
};

TEST_F(OutOfMemoryTest, ResidentStages) {
  FailEverywhere(Everywhere(Policy::kResident), Tiny(), "ti2v-5b",
                 {"T5_Encoding", "Step_0_Inference", "VAE_Decoding"});
}

TEST_F(OutOfMemoryTest, StagesThatBringWeights) {
  FailEverywhere(Everywhere(Policy::kHost), Tiny(), "ti2v-5b", {"T5_Encoding", "Step_0_Loading"});
  FailEverywhere(Everywhere(Policy::kStream), Tiny(), "ti2v-5b", {"Step_0_Loading"});
  GenerationRequest request = Tiny();
  request.shift = 1;  // so that each expert has a step
  // The second expert comes beside the first.
  FailEverywhere(Everywhere(Policy::kHost), request, "t2v-a14b", {"Step_0_Loading"});
}

TEST_F(OutOfMemoryTest, StagesOfImages) {
  GenerationRequest request = Tiny();
  request.width = 64;
  request.image = GoldenImage();
  FailEverywhere(Everywhere(Policy::kHost), request, "ti2v-5b",
                 {"TI2V_Preprocess", "VAE_Encoding"});
}

TEST_F(OutOfMemoryTest, ADecodingThatRunsOutOfMemoryGoesOnInTiles) {
  FailingAllocator allocator;
  const auto engine = MakeEngine({});
  Load(*engine, "m", "ti2v-5b");
  GenerationRequest request = Tiny();
  request.width = 512;
  request.height = 256;
  request.num_frames = 1;
  request.steps = 1;
  StageFault count(allocator, "VAE_Decoding", StageFault::kNever);
  const auto expected = Latents(*engine, request, &count);
  ASSERT_TRUE(expected.ok()) << expected.status();
  for (const int64_t n : {int64_t{1}, count.allocations() / 2, count.allocations()}) {
    StageFault fault(allocator, "VAE_Decoding", n);
    const auto latents = Latents(*engine, request, &fault);
    ASSERT_TRUE(latents.ok()) << n << ": " << latents.status();
    EXPECT_EQ(fault.spans(), 2) << "one attempt, and one in tiles";
    EXPECT_TRUE(*latents == *expected);
    EXPECT_GT(std::filesystem::file_size(folder_ / "video.mkv"), 100u);
  }
}

}  // namespace
}  // namespace wan
