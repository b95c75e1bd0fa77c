// The engine asks how much host memory there is before it accepts a job and before it parks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>

#include "engine/api/errors.h"
#include "engine/runtime/wan_engine.h"

namespace wan {
namespace {

constexpr uint64_t kGiB = uint64_t{1} << 30;

class HostMemoryEngineTest : public testing::Test {
 protected:
  HostMemoryEngineTest()
      : engine_(LoadOptions{}, DeviceDescription{"cpu", "", "fp32"}, PlanLimits{64 * kGiB, {}},
                std::make_unique<MachineMonitor>("", nullptr, nullptr),
                [this] { return available_.load(); }) {
    Recorder recorder(SystemClock(), engine_.Monitor(), {});
    const absl::Status loaded = engine_.LoadModel({"m", "synthetic:ti2v-tiny"}, recorder, {});
    EXPECT_TRUE(loaded.ok()) << loaded;
  }

  static GenerationRequest Request(int side, int frames) {
    GenerationRequest request;
    request.model = "m";
    request.prompt = "a cat";
    request.width = side;
    request.height = side;
    request.num_frames = frames;
    request.steps = 1;
    request.outputs = {OutputKind::kLatents};
    return request;
  }

  std::atomic<uint64_t> available_ = 64 * kGiB;
  WanEngine engine_;
};

// Abuse d: accepted in a control group of 650 MB, and killed at every restart.
TEST_F(HostMemoryEngineTest, AJobBeyondTheControlGroupIsRefusedOnTheCpu) {
  GenerationRequest large = Request(1024, 121);
  large.outputs = {OutputKind::kMp4};
  const auto roomy = engine_.Plan(large);
  ASSERT_TRUE(roomy.ok()) << roomy.status();
  EXPECT_GT(roomy->peak_host_bytes, uint64_t{300} << 20);
  available_ = uint64_t{300} << 20;
  const auto refused = engine_.Plan(large);
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(refused.status().message()), testing::HasSubstr("of host memory in"));
  EXPECT_TRUE(engine_.Plan(Request(64, 5)).ok()) << "a small one runs on";
  available_ = 0;
  EXPECT_TRUE(engine_.Plan(large).ok()) << "where nothing is known, nothing is refused";
}

TEST_F(HostMemoryEngineTest, ParkingAsksAgain) {
  absl::StatusOr<GenerationPlan> plan = engine_.Plan(Request(64, 5));
  ASSERT_TRUE(plan.ok()) << plan.status();
  for (ComponentResidency& entry : plan->residency) entry.policy = ResidencyPolicy::kHost;
  // Somebody else took the memory between the plan and the job.
  available_ = 1000;
  Recorder recorder(SystemClock(), engine_.Monitor(), {});
  GenerationObserver observer;
  const std::vector<OutputFile> outputs;
  const absl::Status status = engine_.Generate(*plan, outputs, recorder, observer, {});
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
  EXPECT_EQ(ReasonOf(status), "HOST_MEMORY_EXHAUSTED");
  available_ = 64 * kGiB;
  const absl::Status after = engine_.Generate(*plan, outputs, recorder, observer, {});
  EXPECT_TRUE(after.ok()) << after;
}

}  // namespace
}  // namespace wan
