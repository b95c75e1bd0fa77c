// The explicit Euler method, which treats the flow as constant during a step.
#include <ATen/TensorOperators.h>

#include "engine/schedulers/flow_solver.h"

namespace wan {
namespace {

class FlowEuler final : public FlowSolver {
 public:
  explicit FlowEuler(FlowSchedule schedule) : FlowSolver(std::move(schedule)) {}

 protected:
  int HistorySize(int) const override { return 0; }

  at::Tensor Advance(const at::Tensor& model_output, int step, const at::Tensor& sample,
                     std::vector<at::Tensor>&) const override {
    return sample + (sigma(step + 1) - sigma(step)) * model_output;
  }
};

}  // namespace

std::unique_ptr<FlowSolver> MakeFlowEuler(FlowSchedule schedule) {
  return std::make_unique<FlowEuler>(std::move(schedule));
}

}  // namespace wan
