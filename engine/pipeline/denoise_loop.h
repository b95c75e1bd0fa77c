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
#include "engine/pipeline/finite_watch.h"
#include "engine/schedulers/flow_solver.h"

namespace wan {

// The state after a step. Tensors are fp32 [C, T, H, W] on the model's device.
struct DenoiseState {
  int step = 0;  // number of finished steps
  const at::Tensor& latents;
  const at::Tensor& flow;  // guided model output of this step
  // The noise level of this step's input: input - sigma * flow estimates the clean latents.
  double sigma = 0;
  const at::Tensor& input;  // latents at the start of this step
};

struct DenoiseInputs {
  const GenerationPlan& plan;
  at::Tensor prompt_embeds;           // [L, text_dim]
  at::Tensor negative_prompt_embeds;  // [L', text_dim]; undefined if the plan is not guided
  // Image to video: normalised latents [C, 1, H, W] of the first frame; otherwise undefined. They
  // replace latent frame 0 before the first step and after every step, and that frame's tokens have
  // timestep 0 (upstream's WanTI2V.i2v).
  at::Tensor first_frame_latents;
  // Channels [C', T, H, W] that are appended to the latents in every forward (upstream's "y");
  // undefined if the model takes none.
  at::Tensor condition;
};

// Returns the transformer of step `step` (from 0) of the plan, ready to run and valid until the
// next call. Called once per step inside the span Step_N_Loading, so the time to load the expert
// counts there.
using ExpertSource = std::function<absl::StatusOr<VideoTransformer*>(int step)>;

// Runs the remaining steps after `start`, and returns the final latents. If no step is finished,
// `start` holds the noise. `solver` must be at the same step as `start`. Each step opens the spans
// Step_N_Loading and Step_N_Inference and then calls `on_step`, whose error ends the loop. An
// expert projects the texts in its first step. The parts of Step_N_Inference are "text_projection"
// (in such a step), "forward" (both texts in one batch) or "forward_conditional" and
// "forward_unconditional", and "solver" (all work after the forwards). With a guidance scale of
// exactly 1 only the prompt's forward runs. If the request has `profile`, the first step whose
// expert is warm gets a block_profile. Returns CANCELLED after a stop request, because every
// forward passes `gate`.
//
// Each step's latents are checked in `finite`. If they are not finite, the step fails with the
// verdict, which may be that of an earlier check, and `on_step` is not called.
absl::StatusOr<at::Tensor> DenoiseLoop(
    const DenoiseInputs& inputs, const DenoiseProgress& start, const ExpertSource& expert_for,
    FlowSolver& solver, Recorder& recorder, const WorkGate& gate, FiniteWatch& finite,
    const std::function<absl::Status(const DenoiseState&)>& on_step);

// Returns the noise of a seed in fp32: the first draw of upstream's generator,
// torch.Generator(device).manual_seed(seed).
at::Tensor DrawNoise(at::IntArrayRef shape, int64_t seed, at::Device device);

}  // namespace wan
