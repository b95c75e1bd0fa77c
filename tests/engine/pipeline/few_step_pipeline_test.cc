// Few-step checkpoints: a whole run is the experts' plain forwards and the steps of the formula
// that the distillation's authors publish, in float64.
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/tensor.h>
#include <c10/core/InferenceMode.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "engine/formats/safetensors.h"
#include "engine/formats/safetensors_writer.h"
#include "engine/pipeline/preprocess.h"
#include "engine/pipeline/video_pipeline.h"
#include "engine/runtime/model_loading.h"
#include "tests/engine/formats/files.h"
#include "tests/engine/golden_tensors.h"
#include "tests/fakes/fake_clock.h"
#include "tests/fakes/fake_device_monitor.h"

namespace wan {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kSeed = 3;
constexpr char kWeights[] = "diffusion_pytorch_model.safetensors";

struct Distilled {
  const char* name;
  const char* golden;                         // the tiny checkpoint that it is made of
  std::function<void(const fs::path&)> make;  // makes the distilled checkpoint of links to it
  std::vector<double> sigmas;
  std::vector<double> timesteps;  // as the model is given them
  bool adds_noise = false;        // after each step, instead of Euler's step
  int high_noise_steps = 0;       // if there are two experts
  const char* recognised = "";
};

void PrintTo(const Distilled& distilled, std::ostream* out) { *out << distilled.name; }

// shift 5: s' = 5 s / (1 + 4 s)
const std::vector<double> kEulerSigmas = {1, 0.9375, 2.5 / 3, 0.625, 0};
const std::vector<double> kEulerTimesteps = {1000, 937.5, 2500.0 / 3, 625};

void RenameWeights(const fs::path& folder, const std::string& name) {
  fs::rename(folder / kWeights, folder / name);
}

// Writes the patch embedding's weight as rCM's programs do, as that of a linear layer.
void FlattenPatches(const fs::path& path) {
  const TensorFile file = ReadSafetensors((path / kWeights).string()).value();
  std::vector<SafetensorsTensor> tensors;
  for (const StoredTensor& tensor : file.tensors) {
    std::vector<int64_t> shape = tensor.shape;
    if (shape.size() == 5) shape = {shape[0], shape[1] * shape[2] * shape[3] * shape[4]};
    tensors.push_back({tensor.name, std::string(DTypeName(tensor.dtype)), shape, tensor.bytes});
  }
  ASSERT_TRUE(WriteSafetensors((path / "linear").string(), tensors).ok());
  fs::rename(path / "linear", path / kWeights);
}

// TrigFlow's angles as levels of a flow.
std::vector<double> RcmSigmas() {
  std::vector<double> sigmas;
  for (const double angle : {std::atan(80.0), 1.5, 1.4, 1.0, 0.0}) {
    sigmas.push_back(std::sin(angle) / (std::sin(angle) + std::cos(angle)));
  }
  return sigmas;
}

std::vector<Distilled> All() {
  return {
      {.name = "few_step.json",
       .golden = "t2v-a14b/original",
       .make =
           [](const fs::path& path) {
             testing::WriteFile(
                 path / "few_step.json",
                 R"({"denoising_step_list": [1000, 750, 500, 250], "sample_shift": 5})");
           },
       .sigmas = kEulerSigmas,
       .timesteps = kEulerTimesteps,
       .high_noise_steps = 2},
      {.name = "scheduler_config.json",
       .golden = "t2v-a14b/diffusers",
       .make =
           [](const fs::path& path) {
             testing::ReplaceFile(path / "scheduler" / "scheduler_config.json",
                                  R"({"_class_name": "FlowMatchEulerDiscreteScheduler",
                                      "denoising_step_list": [1000, 750, 500, 250], "shift": 5})");
           },
       .sigmas = kEulerSigmas,
       .timesteps = kEulerTimesteps,
       .high_noise_steps = 2},
      {.name = "LightX2V",
       .golden = "t2v-a14b/original",
       .make =
           [](const fs::path& path) {
             RenameWeights(path / "high_noise_model",
                           "wan2.2_t2v_A14b_high_noise_lightx2v_4step.safetensors");
             RenameWeights(path / "low_noise_model",
                           "wan2.2_t2v_A14b_low_noise_lightx2v_4step.safetensors");
           },
       .sigmas = kEulerSigmas,
       .timesteps = kEulerTimesteps,
       .high_noise_steps = 2,
       .recognised = "LightX2V, by the file name wan2.2_t2v_A14b_low_noise_lightx2v_4step"
                     ".safetensors: 4 steps of euler without guidance"},
      {.name = "FastWan",
       .golden = "ti2v-5b/diffusers",
       .make =
           [](const fs::path& path) {
             nlohmann::json index =
                 nlohmann::json::parse(testing::ReadFile(path / "model_index.json"));
             index["_class_name"] = "WanDMDPipeline";
             testing::ReplaceFile(path / "model_index.json", index.dump());
           },
       // The levels of shift 8 that are nearest to its timesteps.
       .sigmas = {1, 2.24 / 2.96, 0.96 / 1.84, 0},
       .timesteps = {1000, 757, 522},
       .adds_noise = true,
       .recognised = "FastWan, by the pipeline class WanDMDPipeline: 3 steps of lcm without "
                     "guidance"},
      {.name = "rCM",
       .golden = "wan2.1-t2v-1.3b/original",
       .make = FlattenPatches,
       .sigmas = RcmSigmas(),
       // Its programs give the model the timesteps in bf16, where the next numbers are 4 away.
       .timesteps = {988, 932, 852, 608},
       .adds_noise = true,
       .recognised = "rCM, by its linear patch embedding: 4 steps of lcm without guidance"},
  };
}

class FewStepPipelineTest : public ::testing::TestWithParam<Distilled> {
 protected:
  std::shared_ptr<LoadedModel> Load() {
    const fs::path path = folder_ / "m";
    testing::LinkFolder(CheckpointDir() + "/" + GetParam().golden, path);
    GetParam().make(path);
    return LoadModelFromCheckpoint({"m", path.string()}, {}).value();
  }

  testing::TempFolder folder_;
};

TEST_P(FewStepPipelineTest, IsTheExpertsForwardsAndTheFormula) {
  const c10::InferenceMode inference_mode;
  const Distilled& c = GetParam();
  const int steps = static_cast<int>(c.timesteps.size());
  const std::shared_ptr<LoadedModel> model = Load();
  const PipelineModel& pipeline = model->pipeline;
  EXPECT_EQ(model->description.defaults.steps, steps);
  EXPECT_EQ(model->description.defaults.solver, c.adds_noise ? "lcm" : "euler");
  EXPECT_THAT(model->description.defaults.guidance_scale, ::testing::ElementsAre(1));
  EXPECT_EQ(model->description.distillation, c.recognised);

  GenerationRequest request;
  request.prompt = "Two quiet boats drift under a bridge.";
  request.width = 64;
  request.height = 64;
  request.num_frames = 5;
  request.seed = kSeed;
  const GenerationPlan plan =
      PlanRequest(request, pipeline.planned, pipeline.tokenizer.get(), 0, {}).value();

  at::Generator generator = at::detail::createCPUGenerator(kSeed);
  at::Tensor prompt;
  at::Tensor latents;  // in float64
  int steps_seen = 0;
  double worst = 0;
  PipelineTaps taps;
  taps.texts = [&](const at::Tensor& prompt_embeds, const at::Tensor& negative_prompt_embeds) {
    prompt = prompt_embeds;
    EXPECT_FALSE(negative_prompt_embeds.defined());
  };
  taps.noise = [&](const at::Tensor& noise) {
    EXPECT_TRUE(at::equal(noise, at::randn(noise.sizes(), generator, at::kFloat)));
    latents = noise.to(at::kDouble) * c.sigmas[0];
  };
  taps.step = [&](const DenoiseState& state) {
    SCOPED_TRACE(state.step);
    const bool low = pipeline.experts.size() == 2 && steps_seen >= c.high_noise_steps;
    VideoTransformer& expert = *pipeline.experts[low ? 1 : 0].transformer;
    const auto text = expert.PrepareText({{prompt}}).value();
    const at::Tensor timestep = at::tensor({c.timesteps[steps_seen]}, at::kDouble);
    const at::Tensor flow =
        expert.Forward(latents.to(at::kFloat).unsqueeze(0), timestep, *text).value()[0];
    worst = std::max(worst, RelativeError(state.flow, flow));
    const double sigma = c.sigmas[steps_seen];
    const double next = c.sigmas[steps_seen + 1];
    if (c.adds_noise) {
      latents = (1 - next) * (latents - sigma * flow.to(at::kDouble));
      if (next > 0) latents += next * at::randn(flow.sizes(), generator, at::kFloat);
    } else {
      latents = latents + (next - sigma) * flow.to(at::kDouble);
    }
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
  EXPECT_EQ(steps_seen, steps);
  EXPECT_LE(worst, 2e-5);
  std::printf("golden: few steps (%s): worst relative error %.2e, tolerance 2e-05\n", c.name,
              worst);
}

INSTANTIATE_TEST_SUITE_P(All, FewStepPipelineTest, ::testing::ValuesIn(All()));

}  // namespace
}  // namespace wan
