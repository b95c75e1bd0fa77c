// The noise levels of a denoising run. Planning uses this header, so it must not need LibTorch. All
// functions are thread-safe.
//
// A flow model is trained on x(sigma) = (1 - sigma) * clean + sigma * noise. The model predicts the
// flow, noise - clean. A run starts at sigma 1 or just below, which is pure noise, and ends at
// sigma 0.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/api/request_limits.h"
#include "engine/api/timestep_rounding.h"

namespace wan {

// The limits of MakeFlowSchedule's argument `shift`; the argument `steps` must be from 1 to
// kMaxFlowSteps. Within these limits, neighbouring sigmas are distinct numbers in fp32.
inline constexpr double kMinFlowShift = 0.01;
inline constexpr double kMaxFlowShift = 100;

struct FlowSchedule {
  // The N + 1 noise levels, strictly decreasing; the last one is 0. Step i goes from sigmas[i] to
  // sigmas[i + 1].
  std::vector<float> sigmas;
  // The N timesteps that the model gets, from 0 to 1000. UniPC and DPM++ give the model sigma *
  // 1000 cut to an integer, as Wan2.2 does, but compute with the exact sigma. Euler and LCM give
  // the model the uncut number.
  std::vector<double> timesteps;
};

// Returns the names in flow_solvers.def, sorted. MakeFlowSchedule and MakeFlowSolver accept these
// names, and the API uses them too (Solver in proto/wan/v1/generation.proto).
std::vector<std::string> FlowSolverNames();

// Returns the schedule of the solver `name` for `steps` steps. The shift k moves the levels towards
// the noise, once: sigma becomes k * sigma / (1 + (k - 1) * sigma). Before the shift the levels are
// evenly spaced,
//   "unipc": from 0.999 (as fp32) down to 0,
//   "dpm++", "euler", "lcm": from 1 down to 0.
// "unipc" and "dpm++" match Wan2.2's samplers bit for bit; "euler", which Wan2.2 lacks, matches
// diffusers' flow-matching Euler scheduler. INVALID_ARGUMENT if the name is unknown, `steps` is
// outside of [1, kMaxFlowSteps], or `shift` is outside of [kMinFlowShift, kMaxFlowShift].
absl::StatusOr<FlowSchedule> MakeFlowSchedule(std::string_view name, int steps, double shift);

// Returns an Euler schedule that passes through the given timesteps, for few-step (distilled)
// checkpoints. The timesteps are those before the shift is applied, strictly decreasing, and in (0,
// 1000]. For example, 1000, 750, 500, 250 with shift 5 give 1000, 937.5, 833.33, 625. `rounding`
// changes only FlowSchedule::timesteps. INVALID_ARGUMENT for any other timesteps.
absl::StatusOr<FlowSchedule> MakeEulerSchedule(std::span<const double> timesteps, double shift,
                                               TimestepRounding rounding = TimestepRounding::kNone);

}  // namespace wan
