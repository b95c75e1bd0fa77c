// Solvers of the flow's differential equation, which lead from noise to latents in N steps.
// docs/design/solvers.md explains each solver.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/schedulers/flow_schedule.h"

namespace wan {

// The state of a solver between two steps. With this state and the latents, another process can
// continue the run.
struct FlowSolverState {
  int next_step = 0;
  std::vector<at::Tensor>
      history;  // fp32, in the latents' shape; each solver defines what they mean
};

// One run of a solver. Not thread-safe: only one thread at a time may use it.
class FlowSolver {
 public:
  virtual ~FlowSolver() = default;

  const FlowSchedule& schedule() const { return schedule_; }

  // Sets the job's seed, from which a solver that adds noise ("lcm") draws the noise. Unless set,
  // the seed is 0.
  void set_noise_seed(int64_t seed) { noise_seed_ = seed; }

  // Returns the sample at schedule().sigmas[0] with which a run from `noise` starts. The first
  // sample is the noise itself; only "lcm" scales it by the first level, as the models' authors do.
  virtual at::Tensor Start(const at::Tensor& noise) const { return noise; }

  // Takes the sample at schedule().sigmas[step], and returns the sample at sigmas[step + 1].
  // `model_output` is the flow (after guidance) that the model predicts for `sample` at
  // timesteps[step]. All tensors are fp32, of one shape and on one device. The solver keeps no
  // reference to the tensors, so the caller may change them later.
  //
  // Steps must come in order, beginning with step 0 or with the step that was restored. Throws
  // c10::Error, as LibTorch's operators do, if a step is out of order or the tensors do not fit.
  at::Tensor Step(const at::Tensor& model_output, int step, const at::Tensor& sample);

  // Returns the state after the last step. The solver never changes the state's tensors afterwards,
  // so the caller may share them.
  FlowSolverState state() const { return {next_step_, history_}; }

  // Continues an earlier run with the same solver, seed, steps and shift. INVALID_ARGUMENT if the
  // state cannot come from such a run.
  absl::Status Restore(FlowSolverState state);

 protected:
  explicit FlowSolver(FlowSchedule schedule) : schedule_(std::move(schedule)) {}

  // Returns how many tensors the history has before `step`.
  virtual int HistorySize(int step) const = 0;

  // Computes one step, and replaces `history` by the history for the next step.
  virtual at::Tensor Advance(const at::Tensor& model_output, int step, const at::Tensor& sample,
                             std::vector<at::Tensor>& history) const = 0;

  float sigma(int step) const { return schedule_.sigmas[static_cast<size_t>(step)]; }
  int64_t noise_seed() const { return noise_seed_; }
  int steps() const { return static_cast<int>(schedule_.timesteps.size()); }

 private:
  const FlowSchedule schedule_;
  int64_t noise_seed_ = 0;
  int next_step_ = 0;
  std::vector<at::Tensor> history_;
};

// Returns the solver called `name`, at the start of a run. Returns the errors of MakeFlowSchedule.
// Any thread may call the function.
absl::StatusOr<std::unique_ptr<FlowSolver>> MakeFlowSolver(std::string_view name, int steps,
                                                           double shift);

// Returns the solver called `name` for a given schedule, for example one of MakeEulerSchedule.
// INVALID_ARGUMENT if the name is unknown, or if the sigmas do not decrease strictly from at most 1
// to 0.
absl::StatusOr<std::unique_ptr<FlowSolver>> MakeFlowSolver(std::string_view name,
                                                           FlowSchedule schedule);

}  // namespace wan
