// Jobs that several devices make together. The ranks are threads on the CPU, each with weights of
// its own.
#include <c10/util/Exception.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "engine/api/errors.h"
#include "engine/device/device_probe.h"
#include "engine/runtime/replica_loading.h"
#include "tests/engine/golden_dit.h"
#include "tests/engine/golden_tensors.h"
#include "tests/engine/lora_fixture.h"
#include "tests/engine/runtime/residency_fixture.h"
#include "tests/fakes/fake_savepoint_keeper.h"
#include "tests/support/failing_allocator.h"
#include "tests/support/latents_gap.h"

namespace wan {
namespace {

using fakes::FakeSavepointKeeper;
using support::kGuidedRoundingGap;
using support::kRoundingGap;
using support::RelativeGap;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using Policy = ResidencyPolicy;

// Requests a stop when a stage begins.
class StopAt final : public TelemetrySink {
 public:
  explicit StopAt(Stage stage) : stage_(stage) {}
  void OnSpanStart(const SpanStart& start) override {
    if (start.stage == stage_) stop.request_stop();
  }
  std::stop_source stop;

 private:
  const Stage stage_;
};

class Previews final : public GenerationObserver {
 public:
  void OnPreview(const Preview&) override { ++count; }
  void OnResumed(int steps_done) override { resumed = steps_done; }
  int count = 0;
  std::optional<int> resumed;
};

class GroupEngineTest : public ResidencyTest {
 protected:
  static std::unique_ptr<Engine> MakeGroup(size_t ranks,
                                           const std::vector<ComponentResidency>& residency = {}) {
    return MakeEngine(residency, /*limit=*/0, ranks);
  }

  // A job of which every part is small; of two experts each has a step.
  static GenerationRequest Tiny() {
    GenerationRequest request = SmallRequest("m");
    request.steps = 2;
    request.shift = 1;
    return request;
  }

  // Of each component of the only model, in order.
  static std::vector<std::string> DevicesOf(const Engine& engine) {
    std::vector<std::string> devices;
    const std::vector<ModelDescription> models = engine.Models();
    for (const ComponentDescription& component : models[0].components) {
      devices.push_back(component.device);
    }
    return devices;
  }

  std::string MustGive(Engine& engine, const GenerationRequest& request) {
    const absl::StatusOr<std::string> latents = Latents(engine, request);
    EXPECT_TRUE(latents.ok()) << latents.status();
    return latents.value_or("");
  }

  absl::Status Generate(Engine& engine, const GenerationRequest& request,
                        std::vector<TelemetrySink*> sinks, GenerationObserver& observer,
                        const std::stop_token& stop = {}, SavepointKeeper* keeper = nullptr) {
    const absl::StatusOr<GenerationPlan> plan = engine.Plan(request);
    if (!plan.ok()) return plan.status();
    Recorder recorder(SystemClock(), engine.Monitor(), std::move(sinks));
    const std::vector<OutputFile> outputs = {{OutputKind::kLatents, folder_ / "latents"}};
    return engine.Generate(*plan, outputs, recorder, observer, stop, keeper);
  }
};

TEST_F(GroupEngineTest, RanksGiveTheLatentsOfOneDevice) {
  for (const char* const checkpoint : {"ti2v-5b", "t2v-a14b"}) {
    const auto alone = MakeGroup(1);
    Load(*alone, "m", checkpoint);
    GenerationRequest plain = Tiny();
    plain.guidance_scale = {1};
    const std::string guided_latents = MustGive(*alone, Tiny());
    const std::string plain_latents = MustGive(*alone, plain);
    for (const size_t ranks : {2, 3, 4}) {
      const auto group = MakeGroup(ranks);
      Load(*group, "m", checkpoint);
      EXPECT_LE(RelativeGap(MustGive(*group, Tiny()), guided_latents), kGuidedRoundingGap) << ranks;
      EXPECT_LE(RelativeGap(MustGive(*group, plain), plain_latents), kRoundingGap) << ranks;
    }
  }
}

TEST_F(GroupEngineTest, APlanDividesTheGuidanceOfAnEvenGroup) {
  for (const size_t ranks : {1, 2, 3, 4}) {
    const auto engine = MakeGroup(ranks);
    Load(*engine, "m", "ti2v-5b");
    GenerationRequest large = SmallRequest("m");
    large.width = 1280;
    large.height = 704;
    large.num_frames = 49;
    const auto plan = engine->Plan(large);
    ASSERT_TRUE(plan.ok()) << plan.status();
    EXPECT_EQ(plan->batched_guidance, ranks % 2 == 0) << ranks;
  }
}

TEST_F(GroupEngineTest, AnEvenGroupWhoseGuidanceIsSplitGivesTheLatentsOfOneDevice) {
  const auto alone = MakeGroup(1);
  Load(*alone, "m", "ti2v-5b");
  const std::string expected = MustGive(*alone, Tiny());
  const absl::StatusOr<std::unique_ptr<Engine>> group =
      MakeWanEngine({"cpu", "cpu"}, {.guidance_batching = GuidanceBatching::kSplit});
  ASSERT_TRUE(group.ok()) << group.status();
  Load(**group, "m", "ti2v-5b");
  const auto plan = (*group)->Plan(Tiny());
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_FALSE(plan->batched_guidance);
  EXPECT_LE(RelativeGap(MustGive(**group, Tiny()), expected), kGuidedRoundingGap);
}

TEST_F(GroupEngineTest, DescribesWhereTheTransformersAre) {
  const auto engine = MakeGroup(3);
  Load(*engine, "m", "t2v-a14b");
  EXPECT_THAT(DevicesOf(*engine), ElementsAre("cpu", "cpu,cpu,cpu", "cpu,cpu,cpu", "cpu,cpu,cpu"));
}

// Where a device of the group has room for one expert only.
class DividedExpertsTest : public GroupEngineTest {
 protected:
  // A group whose devices each lack a little for both experts of t2v-a14b and a job of its default
  // size.
  std::unique_ptr<Engine> MakeTight(size_t ranks) {
    const std::vector<ComponentResidency> residency = {
        {ModelComponent::kTextEncoder, Policy::kResident},
        {ModelComponent::kVae, Policy::kResident}};
    GenerationRequest whole;
    whole.model = "m";
    whole.prompt = "A red cat.";
    uint64_t too_little = 0;
    uint64_t enough = uint64_t{1} << 40;
    uint64_t expert_bytes = 0;
    do {
      const uint64_t middle = (too_little + enough) / 2;
      const auto engine = MakeEngine(residency, ranks * middle, ranks);
      Load(*engine, "m", "t2v-a14b");
      const ComponentDescription expert = engine->Models()[0].components[1];
      const bool has_both = std::count(expert.device.begin(), expert.device.end(), ',') + 1 ==
                            static_cast<int64_t>(ranks);
      if (has_both) expert_bytes = expert.bytes / ranks;
      (has_both && engine->Plan(whole).ok() ? enough : too_little) = middle;
    } while (enough - too_little > expert_bytes / 4);
    return MakeEngine(residency, ranks * too_little, ranks);
  }
};

TEST_F(DividedExpertsTest, EachHalfHasOneExpert) {
  const auto pair = MakeTight(2);
  Load(*pair, "m", "t2v-a14b");
  EXPECT_THAT(DevicesOf(*pair), ElementsAre("cpu", "cpu", "cpu", "cpu,cpu"));
  const auto four = MakeTight(4);
  Load(*four, "m", "t2v-a14b");
  EXPECT_THAT(DevicesOf(*four), ElementsAre("cpu", "cpu,cpu", "cpu,cpu", "cpu,cpu,cpu,cpu"));
}

TEST(HoldsExpertTest, TheFirstDeviceIsInTheSmallerHalf) {
  PlannedModel planned;
  planned.ranks = 3;
  EXPECT_TRUE(HoldsExpert(planned, 2, 0) && HoldsExpert(planned, 2, 1));
  planned.divides_experts = true;
  std::vector<bool> first;
  std::vector<bool> second;
  for (size_t place = 0; place < 3; ++place) {
    first.push_back(HoldsExpert(planned, place, 0));
    second.push_back(HoldsExpert(planned, place, 1));
  }
  EXPECT_THAT(first, ElementsAre(false, true, true));
  EXPECT_THAT(second, ElementsAre(true, false, false));
}

TEST_F(DividedExpertsTest, TwoDevicesGiveTheBitsOfOne) {
  const TransformerConfig& config = GoldenCheckpoint("t2v-a14b/original").transformer_config();
  const std::string file =
      TestLora::Random(config, /*rank=*/4, /*seed=*/1).Write(folder_, LoraStyle::kComfy);
  const ModelSpec spec{"m", CheckpointPath("t2v-a14b"), {{"a", std::nullopt, file}}};
  GenerationRequest with = Tiny();
  with.loras = {{"a", 1}};
  const auto alone = MakeGroup(1);
  const auto group = MakeTight(2);
  for (Engine* const engine : {alone.get(), group.get()}) {
    Recorder recorder(SystemClock(), engine->Monitor(), {});
    ASSERT_TRUE(engine->LoadModel(spec, recorder).ok());
  }
  ASSERT_EQ(DevicesOf(*group)[1], "cpu");
  const std::string base = MustGive(*alone, Tiny());
  EXPECT_TRUE(MustGive(*group, Tiny()) == base);
  EXPECT_TRUE(MustGive(*group, with) == MustGive(*alone, with));
  EXPECT_TRUE(MustGive(*group, Tiny()) == base) << "the base is back on both devices";
}

TEST_F(DividedExpertsTest, HalvesOfTwoDivideTheGuidance) {
  const auto alone = MakeGroup(1);
  Load(*alone, "m", "t2v-a14b");
  const auto group = MakeTight(4);
  Load(*group, "m", "t2v-a14b");
  ASSERT_EQ(DevicesOf(*group)[1], "cpu,cpu");
  EXPECT_LE(RelativeGap(MustGive(*group, Tiny()), MustGive(*alone, Tiny())), kGuidedRoundingGap);
}

TEST_F(DividedExpertsTest, MemoryThatEndsOnEitherHalfEndsTheStep) {
  FailingAllocator allocator;
  const auto group = MakeTight(2);
  Load(*group, "m", "t2v-a14b");
  ASSERT_EQ(DevicesOf(*group)[1], "cpu");
  const std::string expected = MustGive(*group, Tiny());
  StageFault count(allocator, StageKind::kStepInference, StageFault::kNever);
  ASSERT_TRUE(Latents(*group, Tiny(), &count).ok());
  for (int64_t n = 1; n <= count.allocations() - 5; n += count.allocations() / 7) {
    StageFault fault(allocator, StageKind::kStepInference, n);
    const auto failed = Latents(*group, Tiny(), &fault);
    allocator.Disarm();
    EXPECT_EQ(ReasonOf(failed.status()), "OUT_OF_MEMORY") << n << ": " << failed.status();
    EXPECT_TRUE(MustGive(*group, Tiny()) == expected) << "after " << n;
  }
}

TEST_F(GroupEngineTest, LorasAreMergedOnEveryRankAndLeaveTheBase) {
  const TransformerConfig& config = GoldenCheckpoint("t2v-a14b/original").transformer_config();
  const std::string file =
      TestLora::Random(config, /*rank=*/4, /*seed=*/1).Write(folder_, LoraStyle::kComfy);
  GenerationRequest with = Tiny();
  with.loras = {{"a", 1}};
  std::vector<std::string> base;
  std::vector<std::string> merged;
  for (const size_t ranks : {1, 2}) {
    const auto engine = MakeGroup(ranks);
    Recorder recorder(SystemClock(), engine->Monitor(), {});
    ASSERT_TRUE(
        engine->LoadModel({"m", CheckpointPath("t2v-a14b"), {{"a", std::nullopt, file}}}, recorder)
            .ok());
    base.push_back(MustGive(*engine, Tiny()));
    merged.push_back(MustGive(*engine, with));
    EXPECT_TRUE(MustGive(*engine, Tiny()) == base.back()) << ranks;
    EXPECT_TRUE(MustGive(*engine, with) == merged.back()) << ranks;
  }
  EXPECT_LE(RelativeGap(base[1], base[0]), kGuidedRoundingGap);
  EXPECT_LE(RelativeGap(merged[1], merged[0]), kGuidedRoundingGap);
  EXPECT_GT(RelativeGap(merged[1], base[1]), 1e-3);
}

TEST_F(GroupEngineTest, AStopIsHeardAndTheJobGoesOnFromItsSavepoint) {
  const auto alone = MakeGroup(1);
  Load(*alone, "m", "ti2v-5b");
  for (const size_t ranks : {2, 3}) {
    const auto group = MakeGroup(ranks);
    Load(*group, "m", "ti2v-5b");
    GenerationRequest request = SmallRequest("m");
    const std::string whole = MustGive(*group, request);
    FakeSavepointKeeper keeper;
    keeper.when_stopped = true;
    StopAt stop({StageKind::kStepInference, 1});
    Previews observer;
    EXPECT_TRUE(absl::IsCancelled(
        Generate(*group, request, {&stop}, observer, stop.stop.get_token(), &keeper)));
    EXPECT_THAT(keeper.steps, ElementsAre(1));
    // On this group, and on one device, whose roundings are its own.
    for (Engine* const engine : {group.get(), alone.get()}) {
      Previews resumed;
      const absl::Status status = Generate(*engine, request, {}, resumed, {}, &keeper);
      ASSERT_TRUE(status.ok()) << status;
      EXPECT_EQ(resumed.resumed, 1);
      std::ifstream in(folder_ / "latents", std::ios::binary);
      const std::string latents(std::istreambuf_iterator<char>(in), {});
      if (engine == group.get()) {
        EXPECT_TRUE(latents == whole) << ranks;
      } else {
        EXPECT_LE(RelativeGap(latents, whole), kGuidedRoundingGap) << ranks;
      }
    }
  }
}

TEST_F(GroupEngineTest, SendsPreviews) {
  const auto group = MakeGroup(2);
  Load(*group, "m", "ti2v-5b");
  GenerationRequest request = Tiny();
  request.preview_interval = 1;
  Previews observer;
  const absl::Status status = Generate(*group, request, {}, observer);
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(observer.count, *request.steps);
}

// Wherever memory ends, on whichever rank, the job ends with that on all, none is left waiting, and
// the next job is as if nothing had been.
TEST_F(GroupEngineTest, MemoryThatEndsOnOneRankEndsTheStepOnAll) {
  FailingAllocator allocator;
  GenerationRequest plain = Tiny();
  plain.guidance_scale = {1};
  for (const GenerationRequest& request : {Tiny(), plain}) {
    for (const size_t ranks : {2, 3}) {
      const auto group = MakeGroup(ranks);
      Load(*group, "m", "ti2v-5b");
      const std::string expected = MustGive(*group, request);
      StageFault count(allocator, StageKind::kStepInference, StageFault::kNever);
      ASSERT_TRUE(Latents(*group, request, &count).ok());
      ASSERT_GT(count.allocations(), 20);
      for (int64_t n = 1; n <= count.allocations() - 5; n += count.allocations() / 9) {
        StageFault fault(allocator, StageKind::kStepInference, n);
        const auto failed = Latents(*group, request, &fault);
        allocator.Disarm();
        ASSERT_TRUE(allocator.failed()) << n;
        EXPECT_EQ(ReasonOf(failed.status()), "OUT_OF_MEMORY")
            << ranks << " ranks, " << n << ": " << failed.status();
        EXPECT_TRUE(MustGive(*group, request) == expected) << ranks << " ranks, after " << n;
      }
    }
  }
}

TEST_F(GroupEngineTest, MemoryThatEndsWhileALoraIsMergedLeavesEveryRankWhole) {
  FailingAllocator allocator;
  const TransformerConfig& config = GoldenCheckpoint("ti2v-5b/original").transformer_config();
  const std::string file =
      TestLora::Random(config, /*rank=*/4, /*seed=*/1).Write(folder_, LoraStyle::kComfy);
  // In bf16 sums need memory of their own.
  absl::StatusOr<std::unique_ptr<Engine>> made = MakeWanEngine({"cpu", "cpu"}, {.dtype = "bf16"});
  ASSERT_TRUE(made.ok()) << made.status();
  const std::unique_ptr<Engine> group = *std::move(made);
  Recorder recorder(SystemClock(), group->Monitor(), {});
  ASSERT_TRUE(
      group->LoadModel({"m", CheckpointPath("ti2v-5b"), {{"a", std::nullopt, file}}}, recorder)
          .ok());
  GenerationRequest with = Tiny();
  with.loras = {{"a", 1}};
  const std::string base = MustGive(*group, Tiny());
  const std::string merged = MustGive(*group, with);
  MustGive(*group, Tiny());
  StageFault count(allocator, StageKind::kLoraMerging, StageFault::kNever);
  ASSERT_TRUE(Latents(*group, with, &count).ok());
  ASSERT_GT(count.allocations(), 10);
  bool with_next = false;
  // The last ones are those of the second rank.
  for (int64_t n = count.allocations(); n > 0; n -= 1 + count.allocations() / 10) {
    MustGive(*group, Tiny());
    StageFault fault(allocator, StageKind::kLoraMerging, n);
    const auto failed = Latents(*group, with, &fault);
    allocator.Disarm();
    EXPECT_EQ(ReasonOf(failed.status()), "OUT_OF_MEMORY") << n << ": " << failed.status();
    with_next = !with_next;
    ASSERT_TRUE(MustGive(*group, with_next ? with : Tiny()) == (with_next ? merged : base))
        << "after " << n;
  }
}

// A device that no longer works once it is asked.
class LostDevice final : public DeviceProbe {
 public:
  std::optional<std::string> FindProblem() override { return "it has left the bus"; }
  int64_t RefusedAllocations() override { return 0; }
  bool MemoryIsShort() override { return false; }
  std::string DescribeMemory() override { return ""; }
};

TEST_F(GroupEngineTest, ALostDeviceOfOneRankIsTheGroupsLoss) {
  FailingAllocator allocator;
  allocator.ThrowWith([] { throw std::runtime_error("an illegal address"); });
  const auto group = MakeGroup(3);
  Load(*group, "m", "ti2v-5b");
  StageFault count(allocator, StageKind::kStepInference, StageFault::kNever);
  ASSERT_TRUE(Latents(*group, Tiny(), &count).ok());
  for (int64_t n = 1; n <= count.allocations() - 5; n += count.allocations() / 4) {
    LostDevice lost;
    const ScopedDeviceProbe probe(lost);
    StageFault fault(allocator, StageKind::kStepInference, n);
    const absl::Status failed = Latents(*group, Tiny(), &fault).status();
    allocator.Disarm();
    EXPECT_EQ(ReasonOf(failed), "DEVICE_LOST") << n << ": " << failed;
  }
}

TEST_F(GroupEngineTest, RefusesPoliciesThatNeedOneDevice) {
  for (const Policy policy : {Policy::kHost, Policy::kStream, Policy::kDisk, Policy::kCpu}) {
    const auto group = MakeGroup(2, {{ModelComponent::kTransformer, policy}});
    Recorder recorder(SystemClock(), group->Monitor(), {});
    const absl::Status status = group->LoadModel({"m", CheckpointPath("ti2v-5b")}, recorder);
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_THAT(status.message(), HasSubstr("must be auto or resident in a group of 2 devices"));
  }
  // What only one device computes goes where it is told.
  const auto group = MakeGroup(
      2, {{ModelComponent::kTextEncoder, Policy::kHost}, {ModelComponent::kVae, Policy::kDisk}});
  Load(*group, "m", "ti2v-5b");
  EXPECT_NE(MustGive(*group, Tiny()), "");
}

TEST_F(GroupEngineTest, AModelThatDoesNotLoadOnOneRankIsNotLoaded) {
  FailingAllocator allocator;
  const auto group = MakeGroup(2);
  Recorder recorder(SystemClock(), group->Monitor(), {});
  for (const int64_t n : {5, 50, 200}) {
    allocator.FailAt(n);
    const absl::Status status = group->LoadModel({"m", CheckpointPath("ti2v-5b")}, recorder);
    allocator.Disarm();
    // The engine tries once more after it has made room.
    EXPECT_TRUE(status.ok() || ReasonOf(status) == "OUT_OF_MEMORY") << status;
  }
  Load(*group, "m", "ti2v-5b");
  EXPECT_NE(MustGive(*group, Tiny()), "");
}

TEST(GroupFactoryTest, NamesDevicesThatMakeNoGroup) {
  const auto error = [](const std::vector<std::string>& devices) {
    return std::string(MakeWanEngine(devices, {}).status().message());
  };
  EXPECT_THAT(error({}), HasSubstr("the group has no device"));
  EXPECT_THAT(error({"cpu", "cuda:0"}), HasSubstr("must all be GPUs, or all be cpu"));
  EXPECT_THAT(error({"cuda:1", "cuda:1"}), HasSubstr("'cuda:1' is twice in one group"));
  EXPECT_THAT(error({"cpu", "tpu"}), HasSubstr("tpu"));
}

}  // namespace
}  // namespace wan
