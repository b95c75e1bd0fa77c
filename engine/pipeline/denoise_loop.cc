#include "engine/pipeline/denoise_loop.h"

#include <ATen/DeviceAccelerator.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>

#include <array>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/device/device_moment.h"

namespace wan {
namespace {

absl::Status StoppedStatus(int step, size_t total) {
  return absl::CancelledError("stopped before step " + std::to_string(step + 1) + " of " +
                              std::to_string(total));
}

// Measures how long the parts of one step take. On a GPU the ends of parts are marks in the GPU's
// queue, and nothing waits for the marks before the step has ended.
class StepParts {
 public:
  explicit StepParts(const at::Device& device) : device_(device), start_(device) {}

  // Ends a part, which began where the previous part ended.
  void End(std::string name, std::optional<double> flops = std::nullopt,
           std::optional<double> change_ratio = std::nullopt) {
    ends_.push_back({std::move(name), flops, change_ratio, DeviceMoment(device_)});
  }

  // Adds the parts to the step's span. Call AddTo once the device has done all parts.
  void AddTo(Span& span) const {
    const DeviceMoment* before = &start_;
    for (const Ended& part : ends_) {
      span.AddPart({.name = part.name,
                    .start_seconds = start_.SecondsUntil(*before),
                    .seconds = before->SecondsUntil(part.moment),
                    .flops = part.flops,
                    .change_ratio = part.change_ratio});
      before = &part.moment;
    }
  }

 private:
  struct Ended {
    std::string name;
    std::optional<double> flops;
    std::optional<double> change_ratio;
    DeviceMoment moment;
  };

  const at::Device device_;
  const DeviceMoment start_;
  std::vector<Ended> ends_;
};

// Returns the step in which a block is profiled: the first step whose expert is warm, or else the
// last step; -1 if the job has no profile.
int ProfiledStep(const GenerationPlan& plan, int start) {
  if (!plan.request.profile) return -1;
  const int total = static_cast<int>(plan.steps.size());
  int last = start;
  for (int step = start + 1; step < total; ++step) {
    if (plan.steps[step].reuses_blocks) continue;
    if (plan.steps[step].expert == plan.steps[step - 1].expert) return step;
    last = step;
  }
  return last;
}

BlockUse UseOfBlocks(const GenerationPlan& plan, size_t step) {
  if (plan.steps[step].reuses_blocks) return BlockUse::kReuse;
  const bool next_reuses = step + 1 < plan.steps.size() && plan.steps[step + 1].reuses_blocks;
  return next_reuses || plan.request.calibrate ? BlockUse::kComputeAndKeep : BlockUse::kCompute;
}

// Returns the name that a forward has as a part of a step.
std::string ForwardName(BlockUse blocks, int64_t batch, bool is_first) {
  const std::string name = blocks == BlockUse::kReuse ? "reuse" : "forward";
  if (batch > 1) return name;
  return name + (is_first ? "_conditional" : "_unconditional");
}

// Computes the flow of a step: uncond + guidance_scale * (cond - uncond), from a forward with the
// negative prompt (uncond) and one with the prompt (cond). With a scale of exactly 1 only cond is
// computed, which differs from upstream's result only by rounding.
class GuidedFlow {
 public:
  GuidedFlow(const DenoiseInputs& inputs, const WorkGate& gate) : inputs_(inputs), gate_(gate) {}

  // Makes `expert` compute this step. If the expert or the guidance differs from the previous
  // step's, the expert first projects the texts.
  absl::Status Use(VideoTransformer& expert, const StepPlan& step, StepParts& parts) {
    const bool guided = inputs_.plan.guided && step.guidance_scale != 1;
    if (&expert == expert_ && guided == guided_) return absl::OkStatus();
    expert_ = &expert;
    guided_ = guided;
    texts_.clear();  // the previous expert's texts are not needed any more
    const std::array both = {inputs_.prompt_embeds, inputs_.negative_prompt_embeds};
    const std::span<const at::Tensor> texts(both);
    absl::Status status;
    if (guided && inputs_.plan.batched_guidance) {
      status = Project(texts);
    } else {
      status = Project(texts.first(1));
      if (guided) status.Update(Project(texts.last(1)));
    }
    parts.End("text_projection");
    return status;
  }

  // Computes step number `index` of the plan. The first forward marks a block in `marks` unless
  // that is null.
  absl::StatusOr<at::Tensor> Compute(const at::Tensor& latents, size_t index, StepParts& parts,
                                     BlockMarks* marks) {
    const GenerationPlan& plan = inputs_.plan;
    const StepPlan& step = plan.steps[index];
    const ForwardPolicy policy{.eight_bits = plan.eight_bits,
                               .exact_blocks = plan.exact_blocks,
                               .blocks = UseOfBlocks(plan, index)};
    const double flops = step.reuses_blocks ? plan.reuse_flops : plan.forward_flops;
    if (marks != nullptr) expert_->MarkBlock(marks);
    at::Tensor input = latents;
    if (inputs_.condition.defined()) input = at::cat({latents, inputs_.condition});
    std::vector<at::Tensor> flows;  // the prompt's flow, then the negative prompt's
    for (const std::shared_ptr<const TextConditioning>& text : texts_) {
      const int64_t batch = text->batch();
      const std::string name = ForwardName(policy.blocks, batch, flows.empty());
      absl::StatusOr<at::Tensor> flow =
          expert_->Forward(input.unsqueeze(0).expand({batch, -1, -1, -1, -1}),
                           Timestep(step.timestep, batch), *text, gate_, policy);
      if (!flow.ok()) return flow.status();
      // Move the flow: the expert may be on another device.
      for (const at::Tensor& one : flow->to(latents.device()).unbind()) flows.push_back(one);
      parts.End(name, static_cast<double>(batch) * flops,
                plan.request.calibrate ? text->ChangeRatio() : std::nullopt);
    }
    if (!guided_) return flows.front();
    return flows[1] + (flows[0] - flows[1]) * step.guidance_scale;
  }

  // Returns the name of the step's first forward, if that forward computes its blocks.
  std::string first_forward() const {
    return ForwardName(BlockUse::kCompute, texts_.front()->batch(), true);
  }

 private:
  absl::Status Project(std::span<const at::Tensor> texts) {
    absl::StatusOr<std::shared_ptr<const TextConditioning>> result =
        expert_->PrepareText(texts, gate_);
    if (!result.ok()) return result.status();
    texts_.push_back(*std::move(result));
    return absl::OkStatus();
  }

  // Returns [batch], or [batch, tokens] if the first frame is given, whose tokens have timestep 0.
  at::Tensor Timestep(double timestep, int64_t batch) const {
    const auto options = at::TensorOptions().dtype(at::kDouble);
    if (!inputs_.first_frame_latents.defined()) return at::full({batch}, timestep, options);
    at::Tensor per_token = at::full({batch, inputs_.plan.tokens}, timestep, options);
    per_token.narrow(1, 0, inputs_.plan.tokens / inputs_.plan.latent_shape[1]).zero_();
    return per_token;
  }

  const DenoiseInputs& inputs_;
  const WorkGate& gate_;
  VideoTransformer* expert_ = nullptr;
  bool guided_ = false;
  // The projected texts: prompt and negative prompt as one batch, each as a batch of one, or only
  // the prompt.
  std::vector<std::shared_ptr<const TextConditioning>> texts_;
};

void WaitForDevice(const at::Device& device) {
  // Without this wait, the step's span would end before a GPU has done its work.
  if (!device.is_cpu()) at::accelerator::synchronizeDevice(device.index());
}

}  // namespace

absl::StatusOr<at::Tensor> DenoiseLoop(
    const DenoiseInputs& inputs, const DenoiseProgress& start, const ExpertSource& expert_for,
    FlowSolver& solver, Recorder& recorder, const WorkGate& gate, FiniteWatch& finite,
    const std::function<absl::Status(const DenoiseState&)>& on_step) {
  const GenerationPlan& plan = inputs.plan;
  const auto keep_first_frame = [&](const at::Tensor& latents) {
    if (inputs.first_frame_latents.defined()) {
      latents.narrow(1, 0, 1).copy_(inputs.first_frame_latents);
    }
  };

  GuidedFlow guided_flow(inputs, gate);
  at::Tensor latents = start.latents.clone();
  keep_first_frame(latents);

  const int total = static_cast<int>(plan.steps.size());
  const int profiled = ProfiledStep(plan, start.steps_done);
  for (int step = start.steps_done; step < total; ++step) {
    if (gate.RequestedStop()) return StoppedStatus(step, plan.steps.size());
    const StepPlan& planned = plan.steps[step];
    const auto facts =
        std::make_shared<const StepFacts>(StepFacts{step, total, planned.timestep, planned.expert});

    Span loading = recorder.StartSpan({StageKind::kStepLoading, step}, facts);
    const absl::StatusOr<VideoTransformer*> expert = expert_for(step);
    if (!expert.ok()) return loading.Finish(expert.status());
    loading.Finish().IgnoreError();
    if (gate.RequestedStop()) return StoppedStatus(step, plan.steps.size());

    Span span = recorder.StartSpan({StageKind::kStepInference, step}, facts);
    StepParts parts(latents.device());
    if (absl::Status status = guided_flow.Use(**expert, planned, parts); !status.ok()) {
      return span.Finish(status);
    }
    BlockMarks marks;
    absl::StatusOr<at::Tensor> flow = guided_flow.Compute(latents, static_cast<size_t>(step), parts,
                                                          step == profiled ? &marks : nullptr);
    if (!flow.ok()) return span.Finish(flow.status());
    at::Tensor next = solver.Step(*flow, step, latents);
    keep_first_frame(next);
    // Queue the check before the wait for the step, so that reading its verdict needs no further
    // wait.
    finite.Look({StageKind::kStepInference, step}, "the latents", next);
    parts.End("solver");
    WaitForDevice(next.device());
    parts.AddTo(span);
    span.SetBlockProfile(marks.Profile(guided_flow.first_forward()));
    if (absl::Status status = span.Finish(finite.Verdict()); !status.ok()) return status;

    const DenoiseState state{step + 1, next, *flow, solver.schedule().sigmas[step], latents};
    if (absl::Status status = on_step(state); !status.ok()) return status;
    latents = next;
  }
  return latents;
}

}  // namespace wan
