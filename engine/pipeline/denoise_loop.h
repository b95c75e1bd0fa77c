// The denoising loop: from noise to latents.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>

#include "absl/status/statusor.h"
#include "engine/api/generation.h"
#include "engine/api/recorder.h"
#include "engine/device/work_gate.h"
#include "engine/models/video_transformer.h"
#include "engine/pipeline/denoise_progress.h"
#include "engine/schedulers/flow_solver.h"

namespace wan {

// What a step left behind. Tensors are fp32 [C, T, H, W] on the model's device.
struct DenoiseState {
  int step = 0;  // steps done
  const at::Tensor& latents;
  const at::Tensor& flow;  // the guided model output of this step
  double sigma =
      0;  // of this step's input: latents_before - sigma * flow estimates the clean latents
  const at::Tensor& input;  // the latents this step started from
};

struct DenoiseInputs {
  const GenerationPlan& plan;
  at::Tensor prompt_embeds;           // [L, text_dim]
  at::Tensor negative_prompt_embeds;  // [L', text_dim]; undefined if the plan is not guided
  // Image to video: normalised latents [C, 1, H, W] of the first frame; undefined otherwise. They
  // stand in latent frame 0 before the first step and after every step, and that frame's tokens
  // have timestep 0 (upstream's WanTI2V.i2v).
  at::Tensor first_frame_latents;
  // Channels [C', T, H, W] that every forward gets after those of the latents (upstream's "y");
  // undefined for models without.
  at::Tensor condition;
};

// Gives the transformer of the plan's step number `step` (0 for the first), ready to run and usable
// until the next call. Asked once per step, inside the span Step_N_Loading: whatever it takes to
// bring the expert up is this step's loading.
using ExpertSource = std::function<absl::StatusOr<VideoTransformer*>(int step)>;

// Runs the steps behind `start`, whose latents are the noise before the first, and returns the last
// latents; `solver` stands at the same step. Per step: spans Step_N_Loading and Step_N_Inference,
// then `on_step`, whose error ends the loop. The texts are projected when an
// expert computes its first step. A step whose guidance scale is exactly 1 runs the forward of the
// prompt alone. CANCELLED after a stop request, for which every forward passes `gate`.
absl::StatusOr<at::Tensor> DenoiseLoop(
    const DenoiseInputs& inputs, const DenoiseProgress& start, const ExpertSource& expert_for,
    FlowSolver& solver, Recorder& recorder, const WorkGate& gate,
    const std::function<absl::Status(const DenoiseState&)>& on_step);

// Noise of a seed: the first draw of upstream's generator,
// torch.Generator(device).manual_seed(seed); fp32.
at::Tensor DrawNoise(at::IntArrayRef shape, int64_t seed, at::Device device);

}  // namespace wan
