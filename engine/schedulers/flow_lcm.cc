// The sampling of consistency models: each step estimates the clean latents and adds fresh noise of
// the next, lower level. Models that were distilled by distribution matching (DMD) or consistency
// (rCM) are made for it; diffusers calls it stochastic sampling.
#include <ATen/TensorOperators.h>

#include "engine/schedulers/flow_solver.h"
#include "engine/schedulers/seeded_noise.h"

namespace wan {
namespace {

class FlowLcm final : public FlowSolver {
 public:
  explicit FlowLcm(FlowSchedule schedule) : FlowSolver(std::move(schedule)) {}

  at::Tensor Start(const at::Tensor& noise) const override { return sigma(0) * noise; }

 protected:
  int HistorySize(int) const override { return 0; }

  at::Tensor Advance(const at::Tensor& model_output, int step, const at::Tensor& sample,
                     std::vector<at::Tensor>&) const override {
    const at::Tensor clean = sample - sigma(step) * model_output;
    const float next = sigma(step + 1);
    if (next == 0) return clean;
    // The seed's first draw is the noise from which the run starts.
    const at::Tensor noise = DrawNoise(sample.sizes(), noise_seed(), sample.device(), step + 1);
    return (1 - next) * clean + next * noise;
  }
};

}  // namespace

std::unique_ptr<FlowSolver> MakeFlowLcm(FlowSchedule schedule) {
  return std::make_unique<FlowLcm>(std::move(schedule));
}

}  // namespace wan
