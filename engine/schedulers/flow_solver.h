// Solvers of the flow's ordinary differential equation, which lead from noise to latents in N
// steps. docs/design/solvers.md explains each of them.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/schedulers/flow_schedule.h"

namespace wan {

// The state of a solver between two steps. With the latents, it is all that another process needs
// to continue the run.
struct FlowSolverState {
  int next_step = 0;
  std::vector<at::Tensor>
      history;  // fp32, of the latents' shape; their meaning is the solver's own
};

// One run. Not thread-safe: one thread at a time may use it.
class FlowSolver {
 public:
  virtual ~FlowSolver() = default;

  const FlowSchedule& schedule() const { return schedule_; }

  // Takes the sample at schedule().sigmas[step] and returns the one at sigmas[step + 1].
  // `model_output` is the (guided) flow that the model predicts for `sample` at timesteps[step].
  // Both must be fp32 tensors of one shape on one device, and so is the result. The solver keeps
  // none of the three, so the caller may change them afterwards.
  //
  // Steps must come in order from 0, or from the step of the state that was restored. Throws
  // c10::Error, as LibTorch's operators do, for a step out of order or for other tensors.
  at::Tensor Step(const at::Tensor& model_output, int step, const at::Tensor& sample);

  // Returns the present state. The solver never changes its tensors afterwards, so they may be
  // shared.
  FlowSolverState state() const { return {next_step_, history_}; }

  // Continues a run of the same solver, steps and shift. INVALID_ARGUMENT if the state cannot
  // belong to such a run.
  absl::Status Restore(FlowSolverState state);

 protected:
  explicit FlowSolver(FlowSchedule schedule) : schedule_(std::move(schedule)) {}

  // Returns the number of tensors in the history when `step` is the next one.
  virtual int HistorySize(int step) const = 0;

  // Computes one step. It reads the history and replaces it by that of the next step.
  virtual at::Tensor Advance(const at::Tensor& model_output, int step, const at::Tensor& sample,
                             std::vector<at::Tensor>& history) const = 0;

  float sigma(int step) const { return schedule_.sigmas[static_cast<size_t>(step)]; }
  int steps() const { return static_cast<int>(schedule_.timesteps.size()); }

 private:
  const FlowSchedule schedule_;
  int next_step_ = 0;
  std::vector<at::Tensor> history_;
};

// Returns the solver `name` at the start of a run, or the errors of MakeFlowSchedule. Any thread
// may call it.
absl::StatusOr<std::unique_ptr<FlowSolver>> MakeFlowSolver(std::string_view name, int steps,
                                                           double shift);

// Returns the solver `name` for a given schedule, for example one of MakeEulerSchedule.
// INVALID_ARGUMENT for an unknown name, or if the sigmas do not decrease strictly from at most 1 to
// 0.
absl::StatusOr<std::unique_ptr<FlowSolver>> MakeFlowSolver(std::string_view name,
                                                           FlowSchedule schedule);

}  // namespace wan
