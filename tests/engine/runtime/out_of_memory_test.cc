// Where memory ends: the job fails with a clear error, or goes on with less, and the next one is as
// ever.
#include <c10/util/Exception.h>
#include <gtest/gtest.h>

#include <functional>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "engine/api/errors.h"
#include "tests/engine/runtime/residency_fixture.h"
#include "tests/support/failing_allocator.h"

namespace wan {
namespace {

using Policy = ResidencyPolicy;

// Every allocation of every stage fails once, and the job after it is as if nothing had been.
class OutOfMemoryTest : public ResidencyTest {
 protected:
  void FailEverywhere(const std::vector<ComponentResidency>& residency,
                      const GenerationRequest& request, const std::string& checkpoint,
                      const std::vector<Stage>& stages) {
    FailingAllocator allocator;
    const auto engine = MakeEngine(residency);
    Load(*engine, "m", checkpoint);
    const auto expected = Latents(*engine, request);
    ASSERT_TRUE(expected.ok()) << expected.status();
    for (const Stage& stage : stages) {
      const std::string name = NameOf(stage);
      StageFault count(allocator, stage, StageFault::kNever);
      ASSERT_TRUE(Latents(*engine, request, &count).ok());
      ASSERT_EQ(count.spans(), 1) << name;
      ASSERT_GT(count.allocations(), 0) << name;
      for (int64_t n = 1; n <= count.allocations(); ++n) {
        StageFault fault(allocator, stage, n);
        const auto failed = Latents(*engine, request, &fault);
        allocator.Disarm();
        EXPECT_TRUE(allocator.failed()) << name << " " << n;
        EXPECT_EQ(failed.status().code(), absl::StatusCode::kResourceExhausted)
            << name << " " << n << ": " << failed.status();
        EXPECT_EQ(ReasonOf(failed.status()), "OUT_OF_MEMORY") << name << " " << n;
        const auto next = Latents(*engine, request);
        ASSERT_TRUE(next.ok()) << "after " << name << " " << n << ": " << next.status();
        ASSERT_TRUE(*next == *expected) << "after " << name << " " << n;
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
                 {StageKind::kT5Encoding, StageKind::kStepInference, StageKind::kVaeDecoding});
}

TEST_F(OutOfMemoryTest, StagesThatBringWeights) {
  FailEverywhere(Everywhere(Policy::kHost), Tiny(), "ti2v-5b",
                 {StageKind::kT5Encoding, StageKind::kStepLoading});
  FailEverywhere(Everywhere(Policy::kStream), Tiny(), "ti2v-5b", {StageKind::kStepLoading});
  GenerationRequest request = Tiny();
  request.shift = 1;  // so that each expert has a step
  // The second expert comes beside the first.
  FailEverywhere(Everywhere(Policy::kHost), request, "t2v-a14b", {StageKind::kStepLoading});
}

TEST_F(OutOfMemoryTest, StagesOfImages) {
  GenerationRequest request = Tiny();
  request.width = 64;
  request.image = GoldenImage();
  FailEverywhere(Everywhere(Policy::kHost), request, "ti2v-5b",
                 {StageKind::kTi2vPreprocess, StageKind::kVaeEncoding});
}

// `request` for one step and one frame, large enough to be decoded in tiles.
GenerationRequest OneStepToTile(GenerationRequest request) {
  request.width = 512;
  request.height = 256;
  request.num_frames = 1;
  request.steps = 1;
  return request;
}

TEST_F(OutOfMemoryTest, ADecodingThatRunsOutOfMemoryGoesOnInTiles) {
  FailingAllocator allocator;
  const auto engine = MakeEngine({});
  Load(*engine, "m", "ti2v-5b");
  const GenerationRequest request = OneStepToTile(Tiny());
  StageFault count(allocator, StageKind::kVaeDecoding, StageFault::kNever);
  const auto expected = Latents(*engine, request, &count);
  ASSERT_TRUE(expected.ok()) << expected.status();
  for (const int64_t n : {int64_t{1}, count.allocations() / 2, count.allocations()}) {
    StageFault fault(allocator, StageKind::kVaeDecoding, n);
    const auto latents = Latents(*engine, request, &fault);
    ASSERT_TRUE(latents.ok()) << n << ": " << latents.status();
    EXPECT_EQ(fault.spans(), 2) << "one attempt, and one in tiles";
    EXPECT_TRUE(*latents == *expected);
    EXPECT_GT(std::filesystem::file_size(folder_ / "video.mkv"), 100u);
  }
}

// Whoever notices that memory ends: the decoding goes on in tiles, and the next job is as ever.
TEST_F(OutOfMemoryTest, EveryFaceOfItLeadsToTiles) {
  FailingAllocator allocator;
  const auto engine = MakeEngine({});
  Load(*engine, "m", "ti2v-5b");
  const GenerationRequest request = OneStepToTile(Tiny());
  StageFault count(allocator, StageKind::kVaeDecoding, StageFault::kNever);
  const auto expected = Latents(*engine, request, &count);
  ASSERT_TRUE(expected.ok()) << expected.status();
  const auto library = [](const char* text) { return [text] { TORCH_CHECK(false, text); }; };
  const std::vector<std::pair<std::string, std::function<void()>>> faces = {
      {"a kernel that is loaded late",
       [] {
         throw c10::AcceleratorError({"", "", 0}, 2, "CUDA error: out of memory");
       }},
      {"cuBLAS", library("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate`")},
      {"cuDNN", library("cuDNN error: CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED")},
      {"operator new", [] { throw std::bad_alloc(); }},
  };
  for (const auto& [name, thrower] : faces) {
    allocator.ThrowWith(thrower);
    StageFault fault(allocator, StageKind::kVaeDecoding, count.allocations() / 2);
    const auto latents = Latents(*engine, request, &fault);
    ASSERT_TRUE(latents.ok()) << name << ": " << latents.status();
    EXPECT_EQ(fault.spans(), 2) << name << ": one attempt, and one in tiles";
    StageFault early(allocator, StageKind::kStepInference, 2);
    const auto failed = Latents(*engine, request, &early);
    allocator.Disarm();
    EXPECT_EQ(ReasonOf(failed.status()), "OUT_OF_MEMORY") << name << ": " << failed.status();
    const auto next = Latents(*engine, request);
    ASSERT_TRUE(next.ok()) << "after " << name << ": " << next.status();
    EXPECT_TRUE(*next == *expected) << "after " << name;
  }
}

}  // namespace
}  // namespace wan
