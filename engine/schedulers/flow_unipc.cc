// UniPC (arXiv 2302.04867) of order 2 with data prediction and B(h) = e^h - 1, on the noise levels
// of the flow. A predictor makes each step. Before the next step, the next model output corrects
// the result.
//
// The history holds the (corrected) sample from which the last step started, then the clean latents
// that were predicted in the last step or the last two steps, newest first.
#include <ATen/TensorOperators.h>
#include <ATen/ops/linalg_solve.h>
#include <ATen/ops/tensor.h>

#include <algorithm>

#include "engine/schedulers/flow_solver.h"
#include "engine/schedulers/noise_level.h"

namespace wan {
namespace {

constexpr int kOrder = 2;

// The quantities of a step between two noise levels that both the predictor and the corrector use.
struct Stretch {
  NoiseLevel from;
  NoiseLevel to;
  float h;    // minus the difference of the lambdas; minus infinity if the step leads to sigma 0
  float b_h;  // e^h - 1

  Stretch(float from_sigma, float to_sigma)
      : from(from_sigma), to(to_sigma), h(-(to.lambda - from.lambda)), b_h(TorchExpm1(h)) {}

  // Returns the sample at `to` under the assumption that the clean latents stay as predicted at
  // `from`.
  at::Tensor Exponential(const at::Tensor& sample, const at::Tensor& clean) const {
    return (to.sigma / from.sigma) * sample - (to.alpha * b_h) * clean;
  }

  // Returns the position of an earlier level relative to the start of this step, in units of the
  // step's length; it is negative.
  float Position(float before_sigma) const {
    return (NoiseLevel(before_sigma).lambda - from.lambda) / -h;
  }
};

class FlowUniPc final : public FlowSolver {
 public:
  explicit FlowUniPc(FlowSchedule schedule) : FlowSolver(std::move(schedule)) {}

 protected:
  int HistorySize(int step) const override { return step == 0 ? 0 : 1 + std::min(step, kOrder); }

  at::Tensor Advance(const at::Tensor& model_output, int step, const at::Tensor& sample,
                     std::vector<at::Tensor>& history) const override {
    const at::Tensor clean = sample - sigma(step) * model_output;
    if (step == 0) {
      // Clone the sample, because the caller may change it.
      history = {sample.clone(), clean};
    } else {
      at::Tensor corrected = Correct(clean, step, history);
      history.resize(kOrder);
      history[0] = std::move(corrected);
      history.insert(history.begin() + 1, clean);
    }
    return Predict(step, history);
  }

 private:
  // Returns the order of the predictor at `step`: it is lower at the start, and in the step to
  // sigma 0.
  int Order(int step) const { return std::min({kOrder, step + 1, steps() - step}); }

  // Returns the corrected sample at `step`. Call Correct only after the model has computed its
  // output for the predicted sample. `clean` is the model's prediction at `step`; `history` is
  // still the history of the previous step.
  at::Tensor Correct(const at::Tensor& clean, int step,
                     const std::vector<at::Tensor>& history) const {
    const Stretch stretch(sigma(step - 1), sigma(step));
    const at::Tensor& clean_before = history[1];
    const at::Tensor change = clean - clean_before;
    const at::Tensor base = stretch.Exponential(history[0], clean_before);
    const float factor = stretch.to.alpha * stretch.b_h;
    if (Order(step - 1) == 1) return base - factor * (0.5f * change);
    // Weights with which the rule is exact for one more order. They are the solution of
    //   w0 + w1 = b0,  position * w0 + w1 = b1.
    const float position = stretch.Position(sigma(step - 2));
    const float phi_1 = stretch.b_h / stretch.h - 1;
    const float phi_2 = phi_1 / stretch.h - 0.5f;
    const float b0 = phi_1 / stretch.b_h;
    const float b1 = phi_2 * 2 / stretch.b_h;
    const at::Tensor weights = at::linalg_solve(
        at::tensor({1.0f, 1.0f, position, 1.0f}).view({2, 2}), at::tensor({b0, b1}));
    const float w0 = weights[0].item<float>();
    const float w1 = weights[1].item<float>();
    const at::Tensor slope = (history[2] - clean_before) / position;
    return base - factor * (w0 * slope + w1 * change);
  }

  at::Tensor Predict(int step, const std::vector<at::Tensor>& history) const {
    const Stretch stretch(sigma(step), sigma(step + 1));
    const at::Tensor& clean = history[1];
    at::Tensor base = stretch.Exponential(history[0], clean);
    if (Order(step) == 1) return base;
    const at::Tensor slope = (history[2] - clean) / stretch.Position(sigma(step - 1));
    return base - (stretch.to.alpha * stretch.b_h) * (0.5f * slope);
  }
};

}  // namespace

std::unique_ptr<FlowSolver> MakeFlowUniPc(FlowSchedule schedule) {
  return std::make_unique<FlowUniPc>(std::move(schedule));
}

}  // namespace wan
