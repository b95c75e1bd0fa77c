// Solvers of the flow's ordinary differential equation: from noise to latents in N steps.
// How each works: docs/solvers.md.
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

// What a solver has to remember between two steps. All there is to keep, beside the latents, to go
// on with a run in another process.
struct FlowSolverState {
  int next_step = 0;
  std::vector<at::Tensor> history;  // fp32, the latents' shape; what each is, the solver knows
};

// One run. Used by one thread at a time.
class FlowSolver {
 public:
  virtual ~FlowSolver() = default;

  const FlowSchedule& schedule() const { return schedule_; }

  // From the sample at schedule().sigmas[step] to the one at sigmas[step + 1]. `model_output` is
  // the (guided) flow that the model predicts for `sample` at timesteps[step]. Both are fp32
  // tensors of one shape on one device, and so is the result; none of the three is kept, so the
  // caller may change them afterwards.
  //
  // Steps come in order from 0, or from the step of the state that was restored. Throws c10::Error,
  // as LibTorch's operators do, for a step out of order or tensors of another kind.
  at::Tensor Step(const at::Tensor& model_output, int step, const at::Tensor& sample);

  // The history so far. Its tensors are never changed afterwards and may be shared.
  FlowSolverState state() const { return {next_step_, history_}; }

  // Takes up a run of the same solver, steps and shift. INVALID_ARGUMENT if the state cannot be of
  // such a run.
  absl::Status Restore(FlowSolverState state);

 protected:
  explicit FlowSolver(FlowSchedule schedule) : schedule_(std::move(schedule)) {}

  // Tensors that the solver keeps when `step` is the next.
  virtual int HistorySize(int step) const = 0;

  // One step; reads the history and leaves the next step's in its place.
  virtual at::Tensor Advance(const at::Tensor& model_output, int step, const at::Tensor& sample,
                             std::vector<at::Tensor>& history) const = 0;

  float sigma(int step) const { return schedule_.sigmas[static_cast<size_t>(step)]; }
  int steps() const { return static_cast<int>(schedule_.timesteps.size()); }

 private:
  const FlowSchedule schedule_;
  int next_step_ = 0;
  std::vector<at::Tensor> history_;
};

// The solver called `name`, at the start of a run. INVALID_ARGUMENT as MakeFlowSchedule.
absl::StatusOr<std::unique_ptr<FlowSolver>> MakeFlowSolver(std::string_view name, int steps,
                                                           double shift);

// The same on a schedule of the caller's, for example MakeEulerSchedule's. INVALID_ARGUMENT for an
// unknown name or sigmas that do not fall strictly from at most 1 to 0.
absl::StatusOr<std::unique_ptr<FlowSolver>> MakeFlowSolver(std::string_view name,
                                                           FlowSchedule schedule);

}  // namespace wan
