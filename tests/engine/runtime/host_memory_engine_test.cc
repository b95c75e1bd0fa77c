// The engine asks how much host memory there is before it accepts a job and before it parks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <memory>
#include <stop_token>
#include <string>

#include "engine/api/errors.h"
#include "engine/monitor/machine_monitor.h"
#include "engine/runtime/wan_engine.h"

namespace wan {
namespace {

constexpr uint64_t kGiB = uint64_t{1} << 30;

class HostMemoryEngineTest : public testing::Test {
 protected:
  HostMemoryEngineTest()
      : engine_(LoadOptions{}, DeviceDescription{"cpu", "", "fp32"}, PlanLimits{64 * kGiB, {}},
                std::make_unique<MachineMonitor>("", nullptr, nullptr),
                MemoryProbes{.host = [this] { return AnswerForHost(); },
                             .device = [this] { return device_available_.load(); }}) {
    Recorder recorder(SystemClock(), engine_.Monitor(), {});
    const absl::Status loaded = engine_.LoadModel({"m", "synthetic:ti2v-tiny"}, recorder, {});
    EXPECT_TRUE(loaded.ok()) << loaded;
  }

  uint64_t AnswerForHost() {
    if (++asked_ == stop_when_asked_) stop_.request_stop();
    return available_;
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
  std::atomic<uint64_t> device_available_ = 64 * kGiB;
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

TEST_F(HostMemoryEngineTest, AModelWithoutRoomIsNotLoaded) {
  available_ = uint64_t{1} << 20;
  Recorder recorder(SystemClock(), engine_.Monitor(), {});
  const absl::Status refused = engine_.LoadModel({"n", "synthetic:ti2v-tiny"}, recorder, {});
  EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition) << refused;
  EXPECT_EQ(ReasonOf(refused), "HOST_MEMORY_EXHAUSTED");
  EXPECT_THAT(std::string(refused.message()), testing::HasSubstr(" is available"));
  available_ = 0;
  EXPECT_TRUE(engine_.LoadModel({"n", "synthetic:ti2v-tiny"}, recorder, {}).ok())
      << "where nothing is known, nothing is refused";
}

// Other processes grow while the server runs.
TEST_F(HostMemoryEngineTest, PlansCountTheDeviceMemoryOfNow) {
  const auto roomy = engine_.Plan(Request(512, 81));
  ASSERT_TRUE(roomy.ok()) << roomy.status();
  device_available_ = roomy->peak_device_bytes;
  EXPECT_TRUE(engine_.Plan(Request(512, 81)).ok());
  device_available_ = 1 << 20;
  const auto refused = engine_.Plan(Request(512, 81));
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kInvalidArgument) << refused.status();
  EXPECT_THAT(std::string(refused.status().message()), testing::HasSubstr("of device memory in"));
  device_available_ = 1024 * kGiB;
  EXPECT_TRUE(engine_.Plan(Request(512, 81)).ok()) << "no more than the limit, no less";
  device_available_ = 0;
  EXPECT_TRUE(engine_.Plan(Request(512, 81)).ok()) << "unknown: the limit of the start";
}

// What every component of a model holds of the device.
class HeldBytes final : public TelemetrySink {
 public:
  void OnSample(const Sample& sample) override {
    if (sample.name == "component_memory_bytes") bytes[sample.labels.at("model")] += sample.value;
  }
  std::map<std::string, double> bytes;
};

TEST_F(HostMemoryEngineTest, OtherModelsAreDroppedWhereTheHostHasNoRoomForThem) {
  Recorder unheard(SystemClock(), engine_.Monitor(), {});
  ASSERT_TRUE(engine_.LoadModel({"other", "synthetic:ti2v-tiny"}, unheard, {}).ok());
  absl::StatusOr<GenerationPlan> plan = engine_.Plan(Request(64, 5));
  ASSERT_TRUE(plan.ok()) << plan.status();
  plan->peak_device_bytes = 64 * kGiB;
  available_ = 1000;
  HeldBytes held;
  Recorder recorder(SystemClock(), engine_.Monitor(), {&held});
  GenerationObserver observer;
  const absl::Status status = engine_.Generate(*plan, {}, recorder, observer, {});
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(held.bytes.at("other"), 0);
  EXPECT_GT(held.bytes.at("m"), 0);
  // It is read again for its next job.
  available_ = 64 * kGiB;
  GenerationRequest request = Request(64, 5);
  request.model = "other";
  const absl::StatusOr<GenerationPlan> again = engine_.Plan(request);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_TRUE(engine_.Generate(*again, {}, unheard, observer, {}).ok());
}

}  // namespace
}  // namespace wan
