// The engine asks how much host memory there is before it accepts a job and before it parks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <stop_token>

#include "engine/api/errors.h"
#include "engine/runtime/wan_engine.h"

namespace wan {
namespace {

constexpr uint64_t kGiB = uint64_t{1} << 30;

class HostMemoryEngineTest : public testing::Test {
 protected:
  HostMemoryEngineTest()
      : engine_(LoadOptions{}, DeviceDescription{"cpu", "", "fp32"}, PlanLimits{64 * kGiB, {}},
                std::make_unique<MachineMonitor>("", nullptr, nullptr), [this] {
                  ++asked_;
                  if (asked_ == stop_when_asked_) stop_.request_stop();
                  return available_.load();
                }) {
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

  // Runs the plan, and asks for a stop when the engine asks for the host's memory that many times.
  absl::Status StopWhenAsked(const GenerationPlan& plan, int times) {
    stop_ = {};
    asked_ = 0;
    stop_when_asked_ = times;
    Recorder recorder(SystemClock(), engine_.Monitor(), {});
    GenerationObserver observer;
    absl::Status status = engine_.Generate(plan, {}, recorder, observer, stop_.get_token());
    stop_when_asked_ = 0;
    return status;
  }

  std::atomic<uint64_t> available_ = 64 * kGiB;
  std::atomic<int> asked_ = 0;
  std::atomic<int> stop_when_asked_ = 0;
  std::stop_source stop_;
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

// The engine asks when the job begins, and once before each component is parked.
TEST_F(HostMemoryEngineTest, AStopEndsTheParkingOfAJobsOwnWeights) {
  absl::StatusOr<GenerationPlan> plan = engine_.Plan(Request(64, 5));
  ASSERT_TRUE(plan.ok()) << plan.status();
  for (ComponentResidency& entry : plan->residency) entry.policy = ResidencyPolicy::kHost;
  const absl::Status status = StopWhenAsked(*plan, 2);
  EXPECT_EQ(status.code(), absl::StatusCode::kCancelled) << status;
  EXPECT_EQ(asked_, 2) << "no other component is parked after the request";
}

TEST_F(HostMemoryEngineTest, AStopEndsTheParkingOfOtherModels) {
  Recorder recorder(SystemClock(), engine_.Monitor(), {});
  ASSERT_TRUE(engine_.LoadModel({"other", "synthetic:ti2v-tiny"}, recorder, {}).ok());
  absl::StatusOr<GenerationPlan> plan = engine_.Plan(Request(64, 5));
  ASSERT_TRUE(plan.ok()) << plan.status();
  plan->peak_device_bytes = 64 * kGiB;
  const absl::Status status = StopWhenAsked(*plan, 2);
  EXPECT_EQ(status.code(), absl::StatusCode::kCancelled) << status;
  EXPECT_LE(asked_, 3) << "no other component is parked after the request";
}

}  // namespace
}  // namespace wan
