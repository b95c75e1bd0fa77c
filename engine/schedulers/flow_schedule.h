// The noise levels of a denoising run. Free of LibTorch, because planning uses it. All functions
// are thread-safe.
//
// A flow model is trained on x(sigma) = (1 - sigma) * clean + sigma * noise and predicts the flow
// noise - clean. A run starts at pure noise, sigma 1 or just below, and ends at sigma 0.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/api/request_limits.h"

namespace wan {

// Bounds of MakeFlowSchedule, besides 1 to kMaxFlowSteps. Within them neighbouring sigmas are
// distinct in fp32.
inline constexpr double kMinFlowShift = 0.01;
inline constexpr double kMaxFlowShift = 100;

struct FlowSchedule {
  // N + 1 noise levels, strictly decreasing; the last is 0. Step i goes from sigmas[i] to
  // sigmas[i + 1].
  std::vector<float> sigmas;
  // The N timesteps that the model gets, 0 to 1000. UniPC and DPM++ truncate sigma * 1000 to an
  // integer, as Wan2.2 does, but compute with the exact sigma; Euler does not truncate.
  std::vector<double> timesteps;
};

// Returns the sorted names in flow_solvers.def, which MakeFlowSchedule and MakeFlowSolver accept.
// The API uses the same names (Solver in proto/wan/v1/generation.proto).
std::vector<std::string> FlowSolverNames();

// Returns the schedule for `steps` steps. `shift` k moves the levels towards the noise once: sigma
// -> k * sigma / (1 + (k - 1) * sigma). Before the shift the levels are evenly spaced,
//   "unipc": from 0.999 (as fp32) down to 0,
//   "dpm++", "euler": from 1 down to 0.
// "unipc" and "dpm++" match Wan2.2's samplers bit for bit; "euler", which Wan2.2 lacks, matches
// diffusers' flow-matching Euler scheduler. INVALID_ARGUMENT for an unknown name, steps outside [1,
// kMaxFlowSteps] or a shift outside [kMinFlowShift, kMaxFlowShift].
absl::StatusOr<FlowSchedule> MakeFlowSchedule(std::string_view name, int steps, double shift);

// Returns an Euler schedule through given timesteps, for few-step (distilled) checkpoints. The
// timesteps are before the shift, strictly decreasing, and in (0, 1000]. For example, 1000, 750,
// 500, 250 with shift 5 give 1000, 937.5, 833.33, 625. INVALID_ARGUMENT for any other timesteps.
absl::StatusOr<FlowSchedule> MakeEulerSchedule(std::span<const double> timesteps, double shift);

}  // namespace wan
