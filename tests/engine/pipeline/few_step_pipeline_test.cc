// Few-step checkpoints: a whole run is the experts' plain forwards and Euler's steps.
#include <ATen/TensorOperators.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/tensor.h>
#include <c10/core/InferenceMode.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "engine/pipeline/preprocess.h"
#include "engine/pipeline/video_pipeline.h"
#include "engine/runtime/model_loading.h"
#include "tests/engine/formats/files.h"
#include "tests/engine/golden_tensors.h"
#include "tests/fakes/fake_clock.h"
#include "tests/fakes/fake_device_monitor.h"

namespace wan {
namespace {

class FewStepPipelineTest : public ::testing::TestWithParam<const char*> {
 protected:
  // The tiny T2V-A14B made a few-step checkpoint, in the layout of the parameter.
  std::shared_ptr<LoadedModel> Load() {
    const std::string layout = GetParam();
    const std::filesystem::path path = folder_ / layout;
    testing::LinkFolder(CheckpointDir() + "/t2v-a14b/" + layout, path);
    if (layout == "original") {
      testing::WriteFile(path / "few_step.json",
                         R"({"denoising_step_list": [1000, 750, 500, 250], "sample_shift": 5})");
    } else {
      testing::ReplaceFile(path / "scheduler" / "scheduler_config.json",
                           R"({"_class_name": "FlowMatchEulerDiscreteScheduler",
                               "denoising_step_list": [1000, 750, 500, 250], "shift": 5})");
    }
    return LoadModelFromCheckpoint({"m", path.string()}, {}).value();
  }

  testing::TempFolder folder_;
};

TEST_P(FewStepPipelineTest, IsTheExpertsForwardsAndEulersSteps) {
  const c10::InferenceMode inference_mode;
  const std::shared_ptr<LoadedModel> model = Load();
  const PipelineModel& pipeline = model->pipeline;
  EXPECT_EQ(model->description.defaults.steps, 4);
  EXPECT_EQ(model->description.defaults.solver, "euler");

  GenerationRequest request;
  request.prompt = "Two quiet boats drift under a bridge.";
  request.width = 64;
  request.height = 48;
  request.num_frames = 5;
  request.seed = 3;
  const GenerationPlan plan =
      PlanRequest(request, pipeline.planned, pipeline.tokenizer.get(), 0, {}).value();

  at::Tensor prompt;
  at::Tensor latents;
  int steps_seen = 0;
  double worst = 0;
  PipelineTaps taps;
  taps.texts = [&](const at::Tensor& prompt_embeds, const at::Tensor& negative_prompt_embeds) {
    prompt = prompt_embeds;
    EXPECT_FALSE(negative_prompt_embeds.defined());
  };
  taps.noise = [&](const at::Tensor& noise) { latents = noise.clone(); };
  taps.step = [&](const DenoiseState& state) {
    SCOPED_TRACE(state.step);
    // shift 5: s' = 5 s / (1 + 4 s)
    const std::vector<float> sigmas = {1.0f, 0.9375f, 2.5f / 3.0f, 0.625f, 0.0f};
    VideoTransformer& expert = *pipeline.experts[steps_seen < 2 ? 0 : 1].transformer;
    const auto text = expert.PrepareText({{prompt}}).value();
    const at::Tensor timestep = at::tensor({sigmas[steps_seen] * 1000.0}, at::kDouble);
    const at::Tensor flow = expert.Forward(latents.unsqueeze(0), timestep, *text).value()[0];
    worst = std::max(worst, RelativeError(state.flow, flow));
    latents = latents + (sigmas[steps_seen + 1] - sigmas[steps_seen]) * flow;
    worst = std::max(worst, RelativeError(state.latents, latents));
    ++steps_seen;
  };
  fakes::FakeClock clock;
  fakes::FakeDeviceMonitor monitor;
  Recorder recorder(clock, monitor, {});
  GenerationObserver observer;
  const absl::Status status =
      RunVideoPipeline(plan, pipeline, {}, recorder, observer, {}, nullptr, taps);
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(steps_seen, 4);
  EXPECT_LE(worst, 1e-5);
  std::printf("golden: few steps (%s): worst relative error %.2e, tolerance 1e-05\n", GetParam(),
              worst);
}

INSTANTIATE_TEST_SUITE_P(Layouts, FewStepPipelineTest, ::testing::Values("original", "diffusers"));

}  // namespace
}  // namespace wan
