// Solvers of the flow's differential equation, from noise to latents in N steps.
// docs/design/solvers.md explains each of them.
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

// The state of a solver between two steps. Together with the latents it lets another process
// continue the run.
struct FlowSolverState {
  int next_step = 0;
  std::vector<at::Tensor> history;  // fp32, in the latents' shape; meaning depends on the solver
};

// One run. Not thread-safe: one thread at a time may use it.
class FlowSolver {
 public:
  virtual ~FlowSolver() = default;

  const FlowSchedule& schedule() const { return schedule_; }

  // Takes the sample at schedule().sigmas[step] and returns the sample at sigmas[step + 1].
  // `model_output` is the (guided) flow that the model predicts for `sample` at timesteps[step].
  // All are fp32 tensors of one shape on one device. The solver keeps none of them, so the caller
  // may change them later.
  //
  // Steps must come in order, from 0 or from the restored step. Throws c10::Error, as LibTorch's
  // operators do, for a step out of order or for other tensors.
  at::Tensor Step(const at::Tensor& model_output, int step, const at::Tensor& sample);

  // Returns the present state. The solver never changes its tensors afterwards, so they may be
  // shared.
  FlowSolverState state() const { return {next_step_, history_}; }

  // Continues a run with the same solver, steps and shift. INVALID_ARGUMENT if the state cannot
  // come from such a run.
  absl::Status Restore(FlowSolverState state);

 protected:
  explicit FlowSolver(FlowSchedule schedule) : schedule_(std::move(schedule)) {}

  // Returns the size of the history before `step`.
  virtual int HistorySize(int step) const = 0;

  // Computes one step, and replaces `history` by the next step's.
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
