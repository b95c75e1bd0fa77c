// Jobs that go on where an earlier attempt was, in an engine of its own: the latents have the bits
// of a job that nobody interrupted.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "engine/api/errors.h"
#include "tests/engine/formats/files.h"
#include "tests/engine/runtime/residency_fixture.h"
#include "tests/fakes/fake_savepoint_keeper.h"
#include "tests/support/failing_allocator.h"

namespace wan {
namespace {

using fakes::FakeSavepointKeeper;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// Notes the stages and asks for a stop when one of them begins.
class Stages final : public TelemetrySink {
 public:
  explicit Stages(std::optional<Stage> stop_at = {}) : stop_at_(stop_at) {}

  void OnSpanStart(const SpanStart& start) override {
    const std::scoped_lock lock(mutex_);
    begun.push_back(NameOf(start.stage));
    if (start.stage == stop_at_) stop.request_stop();
  }

  std::stop_source stop;
  std::vector<std::string> begun;

 private:
  const std::optional<Stage> stop_at_;
  std::mutex mutex_;
};

Stage Step(int step) { return {StageKind::kStepInference, step}; }

class Resumptions final : public GenerationObserver {
 public:
  void OnResumed(int steps_done) override { steps.push_back(steps_done); }
  std::vector<int> steps;
};

class ResumeEngineTest : public ResidencyTest {
 protected:
  // Of one attempt, by a new engine.
  struct Result {
    absl::Status status;
    std::vector<std::string> stages;
    std::vector<int> resumed;
    std::string latents;
  };

  Result Attempt(const std::string& checkpoint, const GenerationRequest& request,
                 FakeSavepointKeeper* keeper, const std::optional<Stage>& stop_at = {},
                 const std::vector<ComponentResidency>& residency = {}) {
    const auto engine = MakeEngine(residency);
    Load(*engine, "m", checkpoint);
    const absl::StatusOr<GenerationPlan> plan = engine->Plan(request);
    if (!plan.ok()) return {plan.status()};
    Stages stages(stop_at);
    Recorder recorder(SystemClock(), engine->Monitor(), {&stages});
    Resumptions observer;
    const std::vector<OutputFile> outputs = {{OutputKind::kLatents, folder_ / "latents"},
                                             {OutputKind::kLosslessMkv, folder_ / "video.mkv"}};
    std::filesystem::remove(outputs[0].path);
    Result result;
    result.status =
        engine->Generate(*plan, outputs, recorder, observer, stages.stop.get_token(), keeper);
    result.stages = stages.begun;
    result.resumed = observer.steps;
    std::ifstream in(outputs[0].path, std::ios::binary);
    result.latents = std::string(std::istreambuf_iterator<char>(in), {});
    return result;
  }

  static GenerationRequest Request(const std::string& solver, int steps) {
    GenerationRequest request = SmallRequest("m");
    request.width = 32;
    request.height = 32;
    request.solver = solver;
    request.steps = steps;
    return request;
  }

  // Stops an attempt in each step but the first, and takes it up again.
  void InterruptEverywhere(const std::string& checkpoint, const GenerationRequest& request,
                           const std::vector<ComponentResidency>& residency = {}) {
    const Result whole = Attempt(checkpoint, request, nullptr, {}, residency);
    ASSERT_TRUE(whole.status.ok()) << whole.status;
    for (int step = 1; step < *request.steps; ++step) {
      SCOPED_TRACE(request.solver + " " + std::to_string(step));
      FakeSavepointKeeper keeper;
      keeper.when_stopped = true;
      const Result first = Attempt(checkpoint, request, &keeper, Step(step), residency);
      EXPECT_EQ(first.status.code(), absl::StatusCode::kCancelled) << first.status;
      EXPECT_THAT(keeper.steps, ElementsAre(step));
      const Result second = Attempt(checkpoint, request, &keeper, {}, residency);
      ASSERT_TRUE(second.status.ok()) << second.status;
      EXPECT_THAT(second.resumed, ElementsAre(step));
      EXPECT_THAT(second.stages, Not(Contains(NameOf(Step(step - 1)))));
      EXPECT_THAT(second.stages, Contains(NameOf(Step(step))));
      EXPECT_TRUE(second.latents == whole.latents) << "other bits";
    }
  }
};

TEST_F(ResumeEngineTest, EverySolverGoesOnWithTheSameBits) {
  for (const char* solver : {"unipc", "dpm++", "euler"}) {
    InterruptEverywhere("ti2v-5b", Request(solver, 5));
  }
}

TEST_F(ResumeEngineTest, ImagesKeepTheirFirstFrame) {
  GenerationRequest request = Request("unipc", 3);
  request.width = 64;
  request.image = GoldenImage();
  InterruptEverywhere("ti2v-5b", request);
}

TEST_F(ResumeEngineTest, ExpertsTakeOverWhereTheyWould) {
  GenerationRequest request = Request("unipc", 4);
  request.shift = 1;  // so that each expert has steps
  InterruptEverywhere("t2v-a14b", request, Everywhere(ResidencyPolicy::kHost));
}

TEST_F(ResumeEngineTest, AFastJobGoesOnWhereItsBlocksAreComputed) {
  const std::string checkpoint = (folder_ / "fast").string();
  testing::LinkFolder(CheckpointPath("ti2v-5b"), checkpoint);
  testing::WriteFile(folder_ / "fast" / "step_ratios.json",
                     R"({"version": 1, "model": "ti2v-5b", "solver": "unipc", "steps": 3,
                         "shift": 5, "guidance_scale": [5],
                         "experts": {"only": {"conditional": [1, 1], "unconditional": [1, 1],
                                              "retained_share": 0.3}}})");
  GenerationRequest request = Request("unipc", 6);
  request.quality = Quality::kFast;  // computes steps 0, 1 and 4
  const Result whole = Attempt(checkpoint, request, nullptr);
  ASSERT_TRUE(whole.status.ok()) << whole.status;
  for (int step = 1; step < 5; ++step) {
    SCOPED_TRACE(step);
    // A step that reuses is so short that it ends before it sees the stop.
    const int begin = step < 3 ? 1 : 4;
    FakeSavepointKeeper keeper;
    keeper.when_stopped = true;
    EXPECT_EQ(Attempt(checkpoint, request, &keeper, Step(step)).status.code(),
              absl::StatusCode::kCancelled);
    EXPECT_THAT(keeper.steps, ElementsAre(begin));
    const Result second = Attempt(checkpoint, request, &keeper);
    ASSERT_TRUE(second.status.ok()) << second.status;
    EXPECT_THAT(second.resumed, ElementsAre(begin));
    EXPECT_TRUE(second.latents == whole.latents) << "other bits";
  }
}

TEST_F(ResumeEngineTest, OnlyDecodingIsDoneAgainWhereOnlyDecodingIsLeft) {
  const GenerationRequest request = Request("unipc", 3);
  const Result whole = Attempt("ti2v-5b", request, nullptr);
  FakeSavepointKeeper keeper;
  keeper.before_decoding = true;
  const Result first = Attempt("ti2v-5b", request, &keeper, StageKind::kVaeDecoding);
  EXPECT_EQ(first.status.code(), absl::StatusCode::kCancelled) << first.status;
  EXPECT_THAT(keeper.steps, ElementsAre(3));
  const Result second = Attempt("ti2v-5b", request, &keeper);
  ASSERT_TRUE(second.status.ok()) << second.status;
  EXPECT_THAT(second.resumed, ElementsAre(3));
  EXPECT_THAT(second.stages, ElementsAre("VAE_Decoding", "Video_Encoding"));
  EXPECT_TRUE(second.latents == whole.latents);
}

TEST_F(ResumeEngineTest, SavepointsAreLeftWhereTheKeeperWantsThem) {
  const GenerationRequest request = Request("dpm++", 3);
  FakeSavepointKeeper every;
  every.every_step = true;
  ASSERT_TRUE(Attempt("ti2v-5b", request, &every).status.ok());
  EXPECT_THAT(every.steps, ElementsAre(1, 2, 3));
  // Somebody cancelled the job: nobody takes it up again.
  FakeSavepointKeeper none;
  EXPECT_FALSE(Attempt("ti2v-5b", request, &none, Step(2)).status.ok());
  EXPECT_THAT(none.steps, IsEmpty());
  // What is kept already is not kept again.
  every.steps.clear();
  every.kept.reset();
  every.when_stopped = true;
  EXPECT_FALSE(Attempt("ti2v-5b", request, &every, Step(1)).status.ok());
  EXPECT_THAT(every.steps, ElementsAre(1));
}

TEST_F(ResumeEngineTest, WhatDoesNotFitIsRefusedAndTheJobBeginsAtItsStart) {
  const GenerationRequest request = Request("unipc", 3);
  const Result whole = Attempt("ti2v-5b", request, nullptr);
  FakeSavepointKeeper keeper;
  keeper.when_stopped = true;
  Attempt("ti2v-5b", request, &keeper, Step(2));
  ASSERT_TRUE(keeper.kept.has_value());
  const std::string good = keeper.kept->bytes;
  const size_t line = good.find('\n');
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string bytes = good;
    bytes.replace(bytes.find(from), from.size(), to);
    return bytes;
  };
  const struct {
    std::string bytes;
    std::string reason;
  } rows[] = {
      {"", "no first line"},
      {good.substr(0, line), "no first line"},
      {"[]" + good.substr(line), "not a JSON object"},
      {good.substr(0, line + 1), "0 bytes of tensors"},
      {good.substr(0, good.size() - 1), "bytes of tensors"},
      {good + "x", "bytes of tensors"},
      {with("\"format\":1", "\"format\":2"), "format"},
      {with("\"steps\":3", "\"steps\":4"), "steps"},
      {with("\"steps_done\":2", "\"steps_done\":0"), "steps_done"},
      {with("\"shape\":[", "\"shape\":[1,"), "shape"},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.reason);
    FakeSavepointKeeper damaged;
    damaged.kept = Savepoint{2, row.bytes};
    const Result result = Attempt("ti2v-5b", request, &damaged);
    ASSERT_TRUE(result.status.ok()) << result.status;
    EXPECT_THAT(damaged.refusals, ElementsAre(HasSubstr(row.reason)));
    EXPECT_THAT(result.resumed, IsEmpty());
    EXPECT_TRUE(result.latents == whole.latents);
  }
}

// Another process may have taken the memory for a while: the steps before are not lost.
TEST_F(ResumeEngineTest, AStepThatRunsOutOfMemoryBeginsAgain) {
  FailingAllocator allocator;
  const auto engine = MakeEngine({});
  Load(*engine, "m", "ti2v-5b");
  const GenerationRequest request = Request("unipc", 3);
  const auto expected = Latents(*engine, request);
  ASSERT_TRUE(expected.ok()) << expected.status();
  StageFault fault(allocator, Step(1), 3);
  const auto latents = Latents(*engine, request, &fault);
  ASSERT_TRUE(latents.ok()) << latents.status();
  EXPECT_TRUE(allocator.failed());
  EXPECT_EQ(fault.spans(), 2) << "the step ran twice";
  EXPECT_TRUE(*latents == *expected);
}

}  // namespace
}  // namespace wan
