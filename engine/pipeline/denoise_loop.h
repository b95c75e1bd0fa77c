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
  int step = 0;  // the number of finished steps
  const at::Tensor& latents;
  const at::Tensor& flow;  // the guided model output of this step
  // The noise level of this step's input: input - sigma * flow estimates the clean latents.
  double sigma = 0;
  const at::Tensor& input;  // the latents from which this step started
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
  // undefined for a model that takes none.
  at::Tensor condition;
};

// Returns the transformer of the plan's step `step` (0 for the first), ready to run and valid until
// the next call. It is called once for each step inside the span Step_N_Loading, so the time to
// bring the expert up counts as that step's loading.
using ExpertSource = std::function<absl::StatusOr<VideoTransformer*>(int step)>;

// Runs the steps after `start` and returns the last latents. Before the first step the latents of
// `start` are the noise. `solver` must be at the same step. Each step opens the spans
// Step_N_Loading and Step_N_Inference and then calls `on_step`, whose error ends the loop. An
// expert projects the texts when it computes its first step. The parts of Step_N_Inference are
// "text_projection" (in such a step), "forward" of both texts in one batch or "forward_conditional"
// and "forward_unconditional", and "solver", which is all that comes after them. A step with a
// guidance scale of exactly 1 runs the forward of the prompt alone. If the request has `profile`,
// the first step that finds its expert warm has a block_profile. Returns CANCELLED after a stop
// request; every forward passes `gate`.
//
// The latents of each step are looked at in `finite`, and `on_step` sees none that are not finite:
// the step then fails with the verdict, which may also be that of earlier looks.
absl::StatusOr<at::Tensor> DenoiseLoop(
    const DenoiseInputs& inputs, const DenoiseProgress& start, const ExpertSource& expert_for,
    FlowSolver& solver, Recorder& recorder, const WorkGate& gate, FiniteWatch& finite,
    const std::function<absl::Status(const DenoiseState&)>& on_step);

// Returns the noise of a seed, fp32: the first draw of upstream's generator,
// torch.Generator(device).manual_seed(seed).
at::Tensor DrawNoise(at::IntArrayRef shape, int64_t seed, at::Device device);

}  // namespace wan
