#include "engine/pipeline/denoise_run.h"

#include <memory>
#include <utility>

#include "engine/device/torch_errors.h"
#include "engine/pipeline/prepared_request.h"
#include "engine/schedulers/flow_solver.h"

namespace wan {
namespace {

absl::StatusOr<std::unique_ptr<FlowSolver>> SolverAt(const GenerationPlan& plan,
                                                     const DenoiseProgress& start) {
  FlowSchedule schedule{plan.sigmas, {}};
  for (const StepPlan& step : plan.steps) schedule.timesteps.push_back(step.timestep);
  absl::StatusOr<std::unique_ptr<FlowSolver>> solver =
      MakeFlowSolver(plan.request.solver, std::move(schedule));
  if (!solver.ok()) return solver.status();
  (*solver)->set_noise_seed(*plan.request.seed);
  if (absl::Status status = (*solver)->Restore({start.steps_done, start.history}); !status.ok()) {
    return status;
  }
  return solver;
}

// Runs the loop once. Keeps `progress` and `kept` (the step of the last savepoint) up to date.
absl::StatusOr<at::Tensor> RunOnce(const DenoiseInputs& inputs, const DenoiseRun& run,
                                   DenoiseProgress& progress, int& kept) {
  const GenerationPlan& plan = inputs.plan;
  const absl::StatusOr<std::unique_ptr<FlowSolver>> solver = SolverAt(plan, progress);
  if (!solver.ok()) return solver.status();
  const auto on_step = [&](const DenoiseState& state) {
    if (CanBeginAt(plan, state.step)) {
      progress = {state.step, state.latents, (*solver)->state().history};
      const bool last = state.step == static_cast<int>(plan.steps.size());
      if (run.savepoints != nullptr && run.savepoints->IsDue(last)) {
        run.savepoints->Keep(ToSavepoint(progress, plan));
        kept = state.step;
      }
    }
    return run.on_step(state);
  };
  const auto expert_for = [&run](int step) { return run.experts.Take(step); };
  DenoiseProgress start = progress;
  // Latents from the request are already mixed with noise for the first step's level.
  const bool mixed = plan.prepared != nullptr && plan.prepared->latents.has_value();
  if (start.steps_done == 0 && !mixed) start.latents = (*solver)->Start(start.latents);
  absl::StatusOr<at::Tensor> latents = absl::InternalError("no step was run");
  absl::Status status = CatchTorchErrors("denoising", [&] {
    latents = DenoiseLoop(inputs, start, expert_for, **solver, run.recorder, run.gate, run.finite,
                          on_step);
    return latents.status();
  });
  if (!status.ok()) return status;
  return latents;
}

}  // namespace

absl::StatusOr<at::Tensor> RunDenoising(const DenoiseInputs& inputs, const DenoiseProgress& start,
                                        const DenoiseRun& run) {
  DenoiseProgress progress = start;
  int kept = start.steps_done;   // step of the last savepoint
  int began = start.steps_done;  // step at which the current run of the loop began
  for (;;) {
    absl::StatusOr<at::Tensor> latents = RunOnce(inputs, run, progress, kept);
    if (latents.ok()) return latents;
    if (IsOutOfMemory(latents.status()) && progress.steps_done > began) {
      began = progress.steps_done;
      run.experts.Finish();
      ReleaseCachedMemory(start.latents.device());
      run.observer.OnResumed(began);
      continue;
    }
    if (run.gate.RequestedStop() && progress.steps_done > kept && run.savepoints != nullptr &&
        run.savepoints->WantsWhenStopped()) {
      run.savepoints->Keep(ToSavepoint(progress, inputs.plan));
    }
    return latents;
  }
}

}  // namespace wan
