#include "engine/pipeline/denoise_loop.h"

#include <ATen/Context.h>
#include <ATen/DeviceAccelerator.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>
#include <ATen/ops/randn.h>

#include <array>
#include <memory>
#include <string>
#include <utility>

namespace wan {
namespace {

absl::Status StoppedStatus(int step, size_t total) {
  return absl::CancelledError("stopped before step " + std::to_string(step + 1) + " of " +
                              std::to_string(total));
}

// Guided flow of one step: uncond + guidance_scale * (cond - uncond). Upstream always runs both
// forwards, also where guidance_scale is 1 or less.
class GuidedFlow {
 public:
  GuidedFlow(const DenoiseInputs& inputs, VideoTransformer& transformer)
      : inputs_(inputs), transformer_(transformer) {}

  // Projects the texts once for the whole job.
  absl::Status Prepare() {
    const std::array both = {inputs_.prompt_embeds, inputs_.negative_prompt_embeds};
    if (inputs_.plan.batched_guidance) {
      return Assign(transformer_.PrepareText(both), batched_);
    }
    absl::Status status = Assign(transformer_.PrepareText(std::span(both).subspan(0, 1)), cond_);
    status.Update(Assign(transformer_.PrepareText(std::span(both).subspan(1, 1)), uncond_));
    return status;
  }

  absl::StatusOr<at::Tensor> Compute(const at::Tensor& latents, const StepPlan& step,
                                     std::stop_token stop) {
    at::Tensor cond;
    at::Tensor uncond;
    if (inputs_.plan.batched_guidance) {
      const at::Tensor pair = latents.unsqueeze(0).expand({2, -1, -1, -1, -1});
      absl::StatusOr<at::Tensor> flow =
          transformer_.Forward(pair, Timestep(step.timestep, 2), *batched_);
      if (!flow.ok()) return flow.status();
      cond = flow->select(0, 0);
      uncond = flow->select(0, 1);
    } else {
      const at::Tensor single = latents.unsqueeze(0);
      const at::Tensor timestep = Timestep(step.timestep, 1);
      absl::StatusOr<at::Tensor> flow = transformer_.Forward(single, timestep, *cond_);
      if (!flow.ok()) return flow.status();
      cond = flow->squeeze(0);
      if (stop.stop_requested()) return absl::CancelledError("stopped between two forwards");
      flow = transformer_.Forward(single, timestep, *uncond_);
      if (!flow.ok()) return flow.status();
      uncond = flow->squeeze(0);
    }
    return uncond + (cond - uncond) * step.guidance_scale;
  }

 private:
  static absl::Status Assign(absl::StatusOr<std::shared_ptr<const TextConditioning>> result,
                             std::shared_ptr<const TextConditioning>& slot) {
    if (!result.ok()) return result.status();
    slot = *std::move(result);
    return absl::OkStatus();
  }

  // [batch], or [batch, tokens] where the given first frame's tokens have timestep 0.
  at::Tensor Timestep(double timestep, int64_t batch) const {
    const auto options = at::TensorOptions().dtype(at::kDouble);
    if (!inputs_.first_frame_latents.defined()) return at::full({batch}, timestep, options);
    at::Tensor per_token = at::full({batch, inputs_.plan.tokens}, timestep, options);
    per_token.narrow(1, 0, inputs_.plan.tokens / inputs_.plan.latent_shape[1]).zero_();
    return per_token;
  }

  const DenoiseInputs& inputs_;
  VideoTransformer& transformer_;
  std::shared_ptr<const TextConditioning> batched_;
  std::shared_ptr<const TextConditioning> cond_;
  std::shared_ptr<const TextConditioning> uncond_;
};

void WaitForDevice(const at::Device& device) {
  // Work on a GPU is asynchronous: without this a span would end before its work does.
  if (!device.is_cpu()) at::accelerator::synchronizeDevice(device.index());
}

}  // namespace

absl::StatusOr<at::Tensor> DenoiseLoop(
    const DenoiseInputs& inputs, VideoTransformer& transformer, FlowSolver& solver,
    Recorder& recorder, std::stop_token stop,
    const std::function<absl::Status(const DenoiseState&)>& on_step) {
  const GenerationPlan& plan = inputs.plan;
  const auto keep_first_frame = [&](const at::Tensor& latents) {
    if (inputs.first_frame_latents.defined()) {
      latents.narrow(1, 0, 1).copy_(inputs.first_frame_latents);
    }
  };

  GuidedFlow guided_flow(inputs, transformer);
  if (absl::Status status = guided_flow.Prepare(); !status.ok()) return status;
  at::Tensor latents = inputs.noise.clone();
  keep_first_frame(latents);

  const int total = static_cast<int>(plan.steps.size());
  for (int step = 0; step < total; ++step) {
    if (stop.stop_requested()) return StoppedStatus(step, plan.steps.size());
    const StepPlan& planned = plan.steps[step];
    const auto facts =
        std::make_shared<const StepFacts>(StepFacts{step, total, planned.timestep, planned.expert});

    // The only expert is resident: nothing to bring up, and the report says how long that took.
    recorder.StartSpan(StepLoadingStage(step), facts).Finish().IgnoreError();

    Span span = recorder.StartSpan(StepInferenceStage(step), facts);
    absl::StatusOr<at::Tensor> flow = guided_flow.Compute(latents, planned, stop);
    if (!flow.ok()) return span.Finish(flow.status());
    at::Tensor next = solver.Step(*flow, step, latents);
    keep_first_frame(next);
    WaitForDevice(next.device());
    span.Finish().IgnoreError();

    const DenoiseState state{step + 1, next, *flow, solver.schedule().sigmas[step], latents};
    if (absl::Status status = on_step(state); !status.ok()) return status;
    latents = next;
  }
  return latents;
}

at::Tensor DrawNoise(at::IntArrayRef shape, int64_t seed, at::Device device) {
  // A generator of its own: nobody else's draws come between seed and noise.
  at::Generator generator = at::globalContext().defaultGenerator(device).clone();
  generator.set_current_seed(static_cast<uint64_t>(seed));
  return at::randn(shape, generator, at::TensorOptions().device(device).dtype(at::kFloat));
}

}  // namespace wan
