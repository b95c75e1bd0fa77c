// Noise levels of a denoising run. No LibTorch: the plan is made from these.
//
// A flow model is trained on x(sigma) = (1 - sigma) * clean + sigma * noise and predicts the flow
// noise - clean. A run starts at pure noise, sigma 1 or just below, and ends at sigma 0.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace wan {

// What MakeFlowSchedule accepts. Within these bounds neighbouring sigmas stay distinct in fp32.
inline constexpr int kMaxFlowSteps = 1000;
inline constexpr double kMinFlowShift = 0.01;
inline constexpr double kMaxFlowShift = 100;

struct FlowSchedule {
  // N + 1 noise levels in falling order; the last is 0. Step i goes from sigmas[i] to sigmas[i +
  // 1].
  std::vector<float> sigmas;
  // N timesteps, 0 to 1000, that the model is told. UniPC and DPM++ cut sigma * 1000 to a whole
  // number, as Wan2.2 does, and then go on with the exact sigma; Euler leaves it as it is.
  std::vector<double> timesteps;
};

// Names that MakeFlowSchedule and MakeFlowSolver know, sorted: "dpm++", "euler", "unipc".
std::vector<std::string> FlowSolverNames();

// The schedule of `steps` steps. `shift` k moves the levels towards the noise, once:
// sigma -> k * sigma / (1 + (k - 1) * sigma). Before it the levels are evenly spaced,
//   "unipc": from 0.999 (as fp32) down to 0,
//   "dpm++", "euler": from 1 down to 0.
// Equal to Wan2.2's samplers to the last bit for "unipc" and "dpm++"; "euler", which Wan2.2 does
// not have, follows the flow-matching Euler scheduler of diffusers. INVALID_ARGUMENT for an unknown
// name, steps outside [1, kMaxFlowSteps] or shift outside [kMinFlowShift, kMaxFlowShift].
absl::StatusOr<FlowSchedule> MakeFlowSchedule(std::string_view name, int steps, double shift);

// An Euler schedule through given timesteps, as few-step (distilled) checkpoints ask for them:
// before the shift, falling strictly, each in (0, 1000]. For example 1000, 750, 500, 250 with shift
// 5 gives 1000, 937.5, 833.33, 625. INVALID_ARGUMENT for anything else.
absl::StatusOr<FlowSchedule> MakeEulerSchedule(std::span<const double> timesteps, double shift);

}  // namespace wan
