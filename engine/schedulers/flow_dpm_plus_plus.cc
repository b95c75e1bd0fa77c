// DPM-Solver++(2M) with the midpoint rule (arXiv 2211.01095), on the noise levels of the flow.
//
// The history holds the clean latents that the previous step predicted.
#include <ATen/TensorOperators.h>

#include "engine/schedulers/flow_solver.h"
#include "engine/schedulers/noise_level.h"

namespace wan {
namespace {

class FlowDpmPlusPlus final : public FlowSolver {
 public:
  explicit FlowDpmPlusPlus(FlowSchedule schedule) : FlowSolver(std::move(schedule)) {}

 protected:
  int HistorySize(int step) const override { return step == 0 ? 0 : 1; }

  at::Tensor Advance(const at::Tensor& model_output, int step, const at::Tensor& sample,
                     std::vector<at::Tensor>& history) const override {
    const NoiseLevel from(sigma(step));
    const NoiseLevel to(sigma(step + 1));
    const at::Tensor clean = sample - from.sigma * model_output;
    // h is infinite in a step from sigma 1 and in a step to sigma 0, but the factors stay finite.
    const float h = to.lambda - from.lambda;
    const float clean_factor = to.alpha * (TorchExp(-h) - 1);
    at::Tensor next = (to.sigma / from.sigma) * sample - clean_factor * clean;
    // A step is of first order if there is no history, and if it leads to sigma 0, where second
    // order is undefined.
    if (step > 0 && step + 1 < steps()) {
      const NoiseLevel before(sigma(step - 1));
      // r is infinite if the previous step began at sigma 1; then the slope is 0.
      const float r = (from.lambda - before.lambda) / h;
      const at::Tensor slope = (1 / r) * (clean - history.front());
      next = next - (0.5f * clean_factor) * slope;
    }
    history = {clean};
    return next;
  }
};

}  // namespace

std::unique_ptr<FlowSolver> MakeFlowDpmPlusPlus(FlowSchedule schedule) {
  return std::make_unique<FlowDpmPlusPlus>(std::move(schedule));
}

}  // namespace wan
