// The denoising loop, which turns noise into latents.
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

// The state of the loop after a step. Tensors are fp32 [C, T, H, W] on the model's device.
struct DenoiseState {
  int step = 0;  // number of finished steps
  const at::Tensor& latents;
  const at::Tensor& flow;  // the model's output in this step, after guidance
  // The noise level of this step's input: input - sigma * flow estimates the clean latents.
  double sigma = 0;
  const at::Tensor& input;  // latents before this step
};

struct DenoiseInputs {
  const GenerationPlan& plan;
  at::Tensor prompt_embeds;           // shape [L, text_dim]
  at::Tensor negative_prompt_embeds;  // shape [L', text_dim]; undefined if the plan is not guided
  // For image to video: normalised latents [C, 1, H, W] of the given first frame; otherwise
  // undefined. These latents replace latent frame 0 before the first step and after every step. The
  // tokens of that frame have timestep 0 (upstream's WanTI2V.i2v).
  at::Tensor first_frame_latents;
  // Channels [C', T, H, W] that are appended to the latents in every forward (upstream's "y");
  // undefined if the model takes none.
  at::Tensor condition;
};

// Returns the transformer for step `step` (from 0) of the plan, ready to run; it is valid until the
// next call. The loop calls it once per step inside the span Step_N_Loading, so that the time of
// loading the expert counts there.
using ExpertSource = std::function<absl::StatusOr<VideoTransformer*>(int step)>;

// Runs the remaining steps after `start`, and returns the final latents. If no step is finished
// yet, `start` holds the noise. `solver` must be at the same step as `start`. Each step opens the
// spans Step_N_Loading and Step_N_Inference and then calls `on_step`, whose error ends the loop.
// Each expert projects the texts in the first step that it computes. The parts of Step_N_Inference
// are "text_projection" (in an expert's first step), then "forward" (both texts in one batch) or
// "forward_conditional" and "forward_unconditional", then "solver" (everything after the forwards).
// With a guidance scale of exactly 1 only the prompt's forward runs. If the request sets `profile`,
// the first step whose expert is warm reports a block_profile. Returns CANCELLED after a stop
// request, because every forward passes `gate`.
//
// `finite` checks the latents of each step. If the latents are not finite, the step fails with the
// verdict of `finite`, and the loop does not call `on_step`. The verdict may concern an earlier
// check.
absl::StatusOr<at::Tensor> DenoiseLoop(
    const DenoiseInputs& inputs, const DenoiseProgress& start, const ExpertSource& expert_for,
    FlowSolver& solver, Recorder& recorder, const WorkGate& gate, FiniteWatch& finite,
    const std::function<absl::Status(const DenoiseState&)>& on_step);

}  // namespace wan
