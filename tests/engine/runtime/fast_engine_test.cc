// Jobs that skip steps, and jobs that measure which ones others may skip, on the golden
// checkpoints.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "engine/api/errors.h"
#include "tests/engine/formats/files.h"
#include "tests/engine/runtime/residency_fixture.h"

namespace wan {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Keeps the parts of the steps.
class Steps final : public TelemetrySink {
 public:
  void OnSpanEnd(const SpanRecord& record) override {
    if (record.stage.kind == StageKind::kStepInference) steps.push_back(record);
  }

  // The name of each step's first forward.
  std::vector<std::string> Forwards() const {
    std::vector<std::string> names;
    for (const SpanRecord& step : steps) {
      for (const SpanPart& part : step.parts) {
        if (!part.flops.has_value()) continue;
        names.push_back(part.name);
        break;
      }
    }
    return names;
  }

  std::vector<SpanRecord> steps;
};

class FastEngineTest : public ResidencyTest {
 protected:
  std::string WithRatios(const std::string& model, const std::string& experts, int steps) {
    const std::filesystem::path path = folder_ / model;
    testing::LinkFolder(CheckpointPath(model), path);
    testing::WriteFile(path / "step_ratios.json",
                       R"({"version": 1, "model": ")" + model +
                           R"(", "solver": "unipc", "steps": )" + std::to_string(steps) +
                           R"(, "shift": 5, "guidance_scale": [5], "experts": )" + experts + "}");
    return path.string();
  }
};

TEST_F(FastEngineTest, SkipsTheStepsOfThePlan) {
  const auto engine = MakeEngine({});
  Load(*engine, "m",
       WithRatios("ti2v-5b", R"({"only": {"conditional": [1, 1],
                                               "unconditional": [1, 1], "retained_share": 0}})",
                  3));
  GenerationRequest request = SmallRequest("m");
  request.steps = 5;
  request.quality = Quality::kFast;
  Steps steps;
  const auto fast = Latents(*engine, request, &steps);
  ASSERT_TRUE(fast.ok()) << fast.status();
  EXPECT_THAT(steps.Forwards(), ElementsAre("forward", "reuse", "reuse", "forward", "reuse"));
  EXPECT_TRUE(*Latents(*engine, request) == *fast) << "the same request gives the same bits";
  request.quality = Quality::kHigh;
  EXPECT_FALSE(*Latents(*engine, request) == *fast);
}

TEST_F(FastEngineTest, RefusesWithoutRatios) {
  const auto engine = MakeEngine({});
  Load(*engine, "m", "ti2v-5b");
  GenerationRequest request = SmallRequest("m");
  request.quality = Quality::kFast;
  EXPECT_THAT(std::string(engine->Plan(request).status().message()),
              HasSubstr("until its ratios are measured: wanctl calibrate m"));
}

TEST_F(FastEngineTest, MeasuresEveryStepButAnExpertsFirst) {
  const auto engine = MakeEngine({});
  Load(*engine, "m", "t2v-a14b");
  GenerationRequest request = SmallRequest("m");
  request.steps = 4;
  request.shift = 1;  // so that each expert has two
  request.guidance_scale = {3};
  request.calibrate = true;
  Steps steps;
  const auto measured = Latents(*engine, request, &steps);
  ASSERT_TRUE(measured.ok()) << measured.status();
  EXPECT_THAT(steps.Forwards(), Each("forward_conditional"));
  std::optional<ExpertRole> before;
  for (const SpanRecord& step : steps.steps) {
    SCOPED_TRACE(step.stage.step);
    const bool is_first = step.step->expert != before;
    before = step.step->expert;
    int forwards = 0;
    for (const SpanPart& part : step.parts) {
      if (!part.flops.has_value()) continue;
      ++forwards;
      EXPECT_EQ(part.change_ratio.has_value(), !is_first);
      if (part.change_ratio.has_value()) EXPECT_NEAR(*part.change_ratio, 1, 0.5);
    }
    EXPECT_EQ(forwards, 2);
  }
}

}  // namespace
}  // namespace wan
