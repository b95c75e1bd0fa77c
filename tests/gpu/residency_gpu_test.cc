// Where weights live, on a GPU: every policy gives the same bits, weights arrive before they are
// used, and after memory ended the next job is as if nothing had been.
#include <ATen/DeviceAccelerator.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/randint.h>
#include <c10/core/InferenceMode.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/api/engine_factory.h"
#include "engine/api/errors.h"
#include "engine/weights/component_weights.h"
#include "engine/weights/staged_upload.h"
#include "engine/weights/weight_loader.h"
#include "tests/engine/engine_jobs.h"
#include "tests/engine/golden_dit.h"
#include "tests/engine/in_memory_weights.h"
#include "tests/gpu/failing_cuda_allocator.h"

namespace wan {
namespace {

using Policy = ResidencyPolicy;

const at::Device kGpu(at::kCUDA, 0);

// Large enough that a copy takes longer than a kernel's launch.
constexpr int64_t kElements = int64_t{32} << 20;
constexpr size_t kGroups = 6;

struct Weights {
  explicit Weights(ComponentWeights::Home home)
      : component(std::make_unique<ComponentWeights>(MakeWeightMover(kGpu), home)) {
    for (size_t g = 0; g < kGroups; ++g) {
      if (g > 0) component->BeginGroup();
      tensors.push_back(at::randint(1 << 20, {kElements}, at::TensorOptions(kGpu).dtype(at::kInt)));
      expected.push_back(tensors.back().cpu());
      component->Add(tensors.back());
    }
    component->FinishBuilding();
  }

  // Uses the groups in turn and only then looks at what was read.
  void ExpectAllUsable(size_t first) {
    std::vector<at::Tensor> read;
    for (size_t g = first; g < kGroups; ++g) {
      component->Use(g, g + 1 < kGroups ? g + 1 : first);
      read.push_back(tensors[g] + 0);
    }
    for (size_t g = first; g < kGroups; ++g) {
      EXPECT_TRUE(at::equal(read[g - first].cpu(), expected[g])) << "group " << g;
    }
  }

  std::unique_ptr<ComponentWeights> component;
  std::vector<at::Tensor> tensors;
  std::vector<at::Tensor> expected;
};

TEST(ComponentWeightsGpuTest, ComeAndGo) {
  const c10::InferenceMode inference;
  Weights weights(ComponentWeights::Home::kDevice);
  weights.ExpectAllUsable(0);
  for (int round = 0; round < 4; ++round) {
    weights.component->Park();
    weights.component->BringUp();
    weights.ExpectAllUsable(0);
  }
}

// Nothing is kept on the host: a loader's work is done again, through locked buffers.
TEST(ComponentWeightsGpuTest, AreReadAgain) {
  const c10::InferenceMode inference;
  constexpr int64_t kRows = 3000;
  auto source = std::make_shared<InMemoryWeights>();
  std::vector<float> values(static_cast<size_t>(kRows * kRows));
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 4093) / 7;
  const std::string bytes(reinterpret_cast<const char*>(values.data()), values.size() * 4);
  for (const char* const name : {"a", "b"}) {
    source->Put({.name = name,
                 .dtype = DType::kFloat32,
                 .shape = {kRows, kRows},
                 .bytes = bytes.size(),
                 .file = "memory"},
                bytes);
  }
  for (const auto home : {ComponentWeights::Home::kDevice, ComponentWeights::Home::kDisk}) {
    const auto weights = std::make_shared<ComponentWeights>(MakeWeightMover(kGpu), home, source);
    WeightLoader loader(*source, kGpu, at::kBFloat16, weights);
    const at::Tensor converted = loader.Get("a", {kRows, kRows});
    loader.BeginGroup();
    const at::Tensor same = loader.Get("b", {kRows, kRows}, at::kFloat);
    loader.Change([same] { same.select(0, 1).add_(1); });
    loader.Finish();
    ASSERT_TRUE(loader.status().ok()) << loader.status();
    const at::Tensor table = at::from_blob(values.data(), {kRows, kRows}, at::kFloat);
    at::Tensor changed = table.clone();
    changed.select(0, 1).add_(1);
    for (int round = 0; round < 4; ++round) {
      weights->Drop();
      EXPECT_EQ(weights->DeviceBytes(), 0);
      EXPECT_EQ(weights->HostBytes(), 0);
      weights->BringUp();
      weights->UseAll();
      EXPECT_TRUE(at::equal(converted.cpu(), table.to(at::kBFloat16)));
      EXPECT_TRUE(at::equal(same.cpu(), changed));
    }
  }
}

TEST(ComponentWeightsGpuTest, Stream) {
  const c10::InferenceMode inference;
  Weights weights(ComponentWeights::Home::kHost);
  weights.component->Stream();
  for (int round = 0; round < 4; ++round) weights.ExpectAllUsable(1);
  weights.component->Park();
  weights.component->BringUp();
  weights.ExpectAllUsable(0);
}

// Memory that the computing still reads is given to weights, and back.
TEST(ComponentWeightsGpuTest, ReusedMemoryIsNotOverwrittenTooEarly) {
  const c10::InferenceMode inference;
  Weights weights(ComponentWeights::Home::kHost);
  const at::Tensor source =
      at::randint(1 << 20, {8 * kElements}, at::TensorOptions(kGpu).dtype(at::kInt));
  const at::Tensor sum = source.sum();
  for (int round = 0; round < 4; ++round) {
    at::Tensor copy = source + 0;
    const at::Tensor later = copy.sum();
    copy.reset();
    weights.component->BringUp();
    weights.ExpectAllUsable(0);
    EXPECT_TRUE(at::equal(later, sum));
    weights.component->Park();
  }
}

TEST(StagedUploadGpuTest, EveryByteArrives) {
  const c10::InferenceMode inference;
  const std::unique_ptr<WeightMover> mover = MakeWeightMover(kGpu);
  StagedUpload upload(*mover);
  for (int round = 0; round < 2; ++round) {
    std::vector<at::Tensor> sources;
    std::vector<at::Tensor> devices;
    for (const int64_t count : {int64_t{1}, UploadSettings().chunk_bytes, int64_t{300'000'001}}) {
      sources.push_back(at::randint(256, {count}, at::kByte));
      devices.push_back(at::zeros({count}, at::TensorOptions(kGpu).dtype(at::kByte)));
      const auto* const bytes = static_cast<const std::byte*>(sources.back().const_data_ptr());
      upload.Copy({.bytes = {bytes, static_cast<size_t>(count)}, .owner = nullptr, .file = nullptr},
                  devices.back());
    }
    ASSERT_TRUE(upload.Arrive().ok());
    for (size_t i = 0; i < sources.size(); ++i) {
      EXPECT_TRUE(at::equal(devices[i].cpu(), sources[i])) << sources[i].numel();
    }
  }
}

class ResidencyGpuTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ =
        std::filesystem::path(testing::TempDir()) / ("residency_gpu_" + std::to_string(getpid()));
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::unique_ptr<Engine> MakeEngine(Policy policy, const std::string& checkpoint,
                                     const std::string& dtype = "bf16",
                                     const EightBitWeights& eight_bit_weights = {}) {
    EngineOptions options;
    options.eight_bit_weights = eight_bit_weights;
    options.dtype = dtype;
    options.residency = Everywhere(policy);
    absl::StatusOr<std::unique_ptr<Engine>> engine = MakeWanEngine({"cuda:0"}, options);
    EXPECT_TRUE(engine.ok()) << engine.status();
    Recorder recorder(SystemClock(), (*engine)->Monitor(), {});
    const absl::Status status =
        (*engine)->LoadModel({"m", GoldenCheckpoint(checkpoint + "/original").path()}, recorder);
    EXPECT_TRUE(status.ok()) << status;
    return *std::move(engine);
  }

  static GenerationRequest Request() {
    GenerationRequest request;
    request.model = "m";
    request.prompt = "A red cat.";
    request.width = 64;
    request.height = 32;
    request.num_frames = 5;
    request.steps = 4;
    request.shift = 1;  // each expert has a step
    request.seed = 3;
    return request;
  }

  absl::StatusOr<std::string> Latents(Engine& engine, const GenerationRequest& request,
                                      TelemetrySink* sink = nullptr) {
    std::vector<TelemetrySink*> sinks;
    if (sink != nullptr) sinks.push_back(sink);
    return GenerateLatents(engine, request, folder_, sinks);
  }

  std::filesystem::path folder_;
};

TEST_F(ResidencyGpuTest, EveryPolicyGivesTheSameLatents) {
  for (const char* const dtype : {"bf16", "fp32"}) {
    for (const char* const checkpoint : {"ti2v-5b", "t2v-a14b"}) {
      std::optional<std::string> expected;
      for (const Policy policy :
           {Policy::kResident, Policy::kHost, Policy::kStream, Policy::kDisk}) {
        const auto engine = MakeEngine(policy, checkpoint, dtype);
        for (int job = 0; job < 3; ++job) {
          const auto latents = Latents(*engine, Request());
          ASSERT_TRUE(latents.ok()) << latents.status();
          if (!expected.has_value()) expected = *latents;
          EXPECT_TRUE(*latents == *expected)
              << checkpoint << " " << dtype << " " << ResidencyPolicyName(policy) << " " << job;
        }
      }
    }
  }
}

TEST_F(ResidencyGpuTest, WeightsInEightBitsGiveTheBitsOfRoundingThemForEachForward) {
  for (const char* const dtype : {"bf16", "fp32"}) {
    GenerationRequest request = Request();
    request.quality = Quality::kHigh;
    const auto expected =
        Latents(*MakeEngine(Policy::kResident, "t2v-a14b", dtype), request).value();
    std::optional<std::string> with_text_encoder;
    for (const Policy policy : {Policy::kResident, Policy::kHost, Policy::kStream, Policy::kDisk}) {
      SCOPED_TRACE(ResidencyPolicyName(policy));
      const auto latents = [&](const EightBitWeights& eight_bits) {
        return Latents(*MakeEngine(policy, "t2v-a14b", dtype, eight_bits), request).value();
      };
      EXPECT_TRUE(latents({.transformers = true}) == expected);
      const std::string both = latents({.transformers = true, .text_encoder = true});
      if (!with_text_encoder.has_value()) with_text_encoder = both;
      EXPECT_TRUE(both == *with_text_encoder);
      EXPECT_FALSE(both == expected);
    }
  }
}

TEST_F(ResidencyGpuTest, ComponentsMayComputeOnTheCpu) {
  const auto engine = MakeEngine(Policy::kCpu, "ti2v-5b", "fp32");
  EXPECT_TRUE(Latents(*engine, Request()).ok());
}

TEST_F(ResidencyGpuTest, EveryAllocationMayFail) {
  FailingCudaAllocator allocator;
  const auto engine = MakeEngine(Policy::kHost, "ti2v-5b");
  const auto expected = Latents(*engine, Request());
  ASSERT_TRUE(expected.ok()) << expected.status();
  for (const StageKind stage : {StageKind::kT5Encoding, StageKind::kStepLoading,
                                StageKind::kStepInference, StageKind::kVaeDecoding}) {
    SCOPED_TRACE(NameOf(stage));
    StageFault count(allocator, stage, StageFault::kNever);
    ASSERT_TRUE(Latents(*engine, Request(), &count).ok());
    ASSERT_GT(count.allocations(), 0);
    for (int64_t n = 1; n <= count.allocations(); ++n) {
      StageFault fault(allocator, stage, n);
      const auto failed = Latents(*engine, Request(), &fault);
      allocator.Disarm();
      if (failed.ok()) {
        // A convolution may do with less workspace, and decoding starts again in tiles; a forward
        // that could not be recorded is launched.
        EXPECT_TRUE(stage == StageKind::kVaeDecoding || stage == StageKind::kStepInference) << n;
        EXPECT_TRUE(*failed == *expected) << n;
      } else {
        EXPECT_EQ(ReasonOf(failed.status()), "OUT_OF_MEMORY") << n << ": " << failed.status();
      }
      const auto next = Latents(*engine, Request());
      ASSERT_TRUE(next.ok()) << "after " << n << ": " << next.status();
      ASSERT_TRUE(*next == *expected) << "after " << n;
    }
  }
}

}  // namespace
}  // namespace wan
