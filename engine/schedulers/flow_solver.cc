#include "engine/schedulers/flow_solver.h"

#include <c10/util/Exception.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace wan {

// The .cc files of the solvers define these functions.
#define WAN_FLOW_SOLVER(name, schedule, solver) std::unique_ptr<FlowSolver> solver(FlowSchedule);
#include "engine/schedulers/flow_solvers.def"
#undef WAN_FLOW_SOLVER

namespace {

struct NamedSolver {
  std::string_view name;
  std::unique_ptr<FlowSolver> (*make)(FlowSchedule);
};

constexpr NamedSolver kSolvers[] = {
#define WAN_FLOW_SOLVER(name, schedule, solver) {name, solver},
#include "engine/schedulers/flow_solvers.def"
#undef WAN_FLOW_SOLVER
};

absl::Status CheckSchedule(const FlowSchedule& schedule) {
  const std::vector<float>& sigmas = schedule.sigmas;
  bool falls = sigmas.size() >= 2 && sigmas.front() <= 1 && sigmas.back() == 0;
  for (size_t i = 0; falls && i + 1 < sigmas.size(); ++i) falls = sigmas[i] > sigmas[i + 1];
  if (!falls) {
    return absl::InvalidArgumentError(
        absl::StrCat("sigmas are ", absl::StrJoin(sigmas, ", "),
                     "; must be strictly decreasing from at most 1 to 0"));
  }
  if (schedule.timesteps.size() + 1 != sigmas.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the schedule has ", schedule.timesteps.size(), " timesteps for ",
                     sigmas.size(), " sigmas; must have one timestep fewer than sigmas"));
  }
  return absl::OkStatus();
}

}  // namespace

at::Tensor FlowSolver::Step(const at::Tensor& model_output, int step, const at::Tensor& sample) {
  TORCH_CHECK(step == next_step_ && step < steps(), "flow solver: step ", step,
              " asked for; the next is ", next_step_, " of ", steps());
  TORCH_CHECK(sample.scalar_type() == at::kFloat && model_output.scalar_type() == at::kFloat,
              "flow solver: latents and model output must be fp32, are ", sample.scalar_type(),
              " and ", model_output.scalar_type());
  TORCH_CHECK(sample.sizes() == model_output.sizes(), "flow solver: latents are ", sample.sizes(),
              ", the model output is ", model_output.sizes(), "; must be equal");
  std::vector<at::Tensor> history = history_;
  at::Tensor next = Advance(model_output, step, sample, history);
  history_ = std::move(history);
  ++next_step_;
  return next;
}

absl::Status FlowSolver::Restore(FlowSolverState state) {
  if (state.next_step < 0 || state.next_step > steps()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the state belongs to step ", state.next_step, "; the run has ", steps()));
  }
  const size_t expected = static_cast<size_t>(HistorySize(state.next_step));
  if (state.history.size() != expected) {
    return absl::InvalidArgumentError(absl::StrCat("the state holds ", state.history.size(),
                                                   " tensors; step ", state.next_step, " needs ",
                                                   expected));
  }
  for (const at::Tensor& tensor : state.history) {
    if (!tensor.defined() || tensor.scalar_type() != at::kFloat ||
        tensor.sizes() != state.history.front().sizes()) {
      return absl::InvalidArgumentError("the state's tensors must be fp32 and of one shape");
    }
  }
  next_step_ = state.next_step;
  history_ = std::move(state.history);
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<FlowSolver>> MakeFlowSolver(std::string_view name, int steps,
                                                           double shift) {
  absl::StatusOr<FlowSchedule> schedule = MakeFlowSchedule(name, steps, shift);
  if (!schedule.ok()) return schedule.status();
  return MakeFlowSolver(name, *std::move(schedule));
}

absl::StatusOr<std::unique_ptr<FlowSolver>> MakeFlowSolver(std::string_view name,
                                                           FlowSchedule schedule) {
  if (absl::Status status = CheckSchedule(schedule); !status.ok()) return status;
  for (const NamedSolver& solver : kSolvers) {
    if (solver.name == name) return solver.make(std::move(schedule));
  }
  return absl::InvalidArgumentError(
      absl::StrCat("solver is '", absl::string_view(name.data(), name.size()), "'; must be one of ",
                   absl::StrJoin(FlowSolverNames(), ", ")));
}

}  // namespace wan
