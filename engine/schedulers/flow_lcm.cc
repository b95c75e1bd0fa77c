// The sampling of consistency models: each step estimates the clean latents and adds fresh noise of
// the next, lower level. Models that were distilled by distribution matching (DMD) or consistency
// (rCM) need this sampling. diffusers calls it stochastic sampling.
#include <ATen/TensorOperators.h>

#include <optional>

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
    if (!draws_ || draws_->seed() != noise_seed() || draws_->device() != sample.device()) {
      draws_.emplace(noise_seed(), sample.device());
    }
    const at::Tensor noise = draws_->Draw(sample.sizes(), step + 1);
    return (1 - next) * clean + next * noise;
  }

 private:
  // Keeps the generator between steps, so that no step draws the noise of earlier steps again. The
  // noise of a step is the same either way.
  mutable std::optional<NoiseDraws> draws_;
};

}  // namespace

std::unique_ptr<FlowSolver> MakeFlowLcm(FlowSchedule schedule) {
  return std::make_unique<FlowLcm>(std::move(schedule));
}

}  // namespace wan
