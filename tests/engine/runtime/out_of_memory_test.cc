// Where memory ends: the job fails with a clear error, or goes on with less, and the next one is as
// ever.
#include <gtest/gtest.h>

#include <string>
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
