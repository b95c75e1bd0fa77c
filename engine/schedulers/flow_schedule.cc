#include "engine/schedulers/flow_schedule.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace wan {
namespace {

constexpr int kTrainTimesteps = 1000;

// `Real` decides the last bit of the result: the reference computes some schedules in double and
// some in fp32.
template <typename Real>
Real Shifted(Real sigma, Real shift) {
  return shift * sigma / (1 + (shift - 1) * sigma);
}

// Returns levels that are evenly spaced from `first` to 0, without the 0 itself, computed in double
// in the order of numpy.linspace.
FlowSchedule WholeTimesteps(double first, int steps, double shift) {
  FlowSchedule schedule;
  const double spacing = (0 - first) / steps;
  for (int i = 0; i < steps; ++i) {
    const double sigma = Shifted(i * spacing + first, shift);
    schedule.sigmas.push_back(static_cast<float>(sigma));
    schedule.timesteps.push_back(static_cast<int>(sigma * kTrainTimesteps));
  }
  schedule.sigmas.push_back(0);
  return schedule;
}

// The first level is 0.999f, because the reference takes it from a table of 1000 levels that begins
// one step below 1.
FlowSchedule WholeTimestepsBelowOne(int steps, double shift) {
  return WholeTimesteps(0.999f, steps, shift);
}

FlowSchedule WholeTimestepsFromOne(int steps, double shift) {
  return WholeTimesteps(1, steps, shift);
}

// The levels are computed in fp32, as diffusers does. With a small shift, rounding may make the
// first level slightly greater than 1, where no run can start.
FlowSchedule ExactTimesteps(std::span<const double> timesteps, double shift) {
  FlowSchedule schedule;
  for (const double timestep : timesteps) {
    const float sigma = std::min(
        Shifted(static_cast<float>(timestep) / kTrainTimesteps, static_cast<float>(shift)), 1.0f);
    schedule.sigmas.push_back(sigma);
    schedule.timesteps.push_back(sigma * static_cast<float>(kTrainTimesteps));
  }
  schedule.sigmas.push_back(0);
  return schedule;
}

FlowSchedule ExactTimesteps(int steps, double shift) {
  std::vector<double> timesteps;
  timesteps.reserve(static_cast<size_t>(steps));
  for (int i = 0; i < steps; ++i) {
    timesteps.push_back(static_cast<double>(kTrainTimesteps) * (steps - i) / steps);
  }
  return ExactTimesteps(timesteps, shift);
}

// Rounds a timestep, which is positive. A bf16 number has the upper half of the bits of an fp32
// number. A tie goes to the even number, as in LibTorch.
double Rounded(double timestep, TimestepRounding rounding) {
  switch (rounding) {
    case TimestepRounding::kNone:
      return timestep;
    case TimestepRounding::kWhole:
      return std::round(timestep);
    case TimestepRounding::kBFloat16: {
      constexpr uint32_t kLower = 0xffff;
      const auto bits = std::bit_cast<uint32_t>(static_cast<float>(timestep));
      const uint32_t odd = (bits >> 16U) & 1U;
      return std::bit_cast<float>((bits + kLower / 2 + odd) & ~kLower);
    }
  }
  return timestep;
}

struct NamedSchedule {
  std::string_view name;
  FlowSchedule (*make)(int steps, double shift);
};

constexpr NamedSchedule kSchedules[] = {
#define WAN_FLOW_SOLVER(name, schedule, solver) {name, schedule},
#include "engine/schedulers/flow_solvers.def"
#undef WAN_FLOW_SOLVER
};

absl::Status CheckSteps(int64_t steps) {
  if (steps >= 1 && steps <= kMaxFlowSteps) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("steps is ", steps, "; must be from 1 to ", kMaxFlowSteps));
}

absl::Status CheckShift(double shift) {
  // Written this way, the condition also rejects NaN.
  if (shift >= kMinFlowShift && shift <= kMaxFlowShift) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("shift is ", shift, "; must be from ", kMinFlowShift, " to ", kMaxFlowShift));
}

}  // namespace

std::vector<std::string> FlowSolverNames() {
  std::vector<std::string> names;
  for (const NamedSchedule& schedule : kSchedules) names.emplace_back(schedule.name);
  return names;
}

absl::StatusOr<FlowSchedule> MakeFlowSchedule(std::string_view name, int steps, double shift) {
  absl::Status status = CheckSteps(steps);
  status.Update(CheckShift(shift));
  if (!status.ok()) return status;
  for (const NamedSchedule& schedule : kSchedules) {
    if (schedule.name == name) return schedule.make(steps, shift);
  }
  return absl::InvalidArgumentError(
      absl::StrCat("solver is '", absl::string_view(name.data(), name.size()), "'; must be one of ",
                   absl::StrJoin(FlowSolverNames(), ", ")));
}

absl::StatusOr<FlowSchedule> MakeEulerSchedule(std::span<const double> timesteps, double shift,
                                               TimestepRounding rounding) {
  absl::Status status = CheckSteps(std::ssize(timesteps));
  status.Update(CheckShift(shift));
  if (!status.ok()) return status;
  double above = kTrainTimesteps;
  for (size_t i = 0; i < timesteps.size(); ++i) {
    const bool falls = i == 0 ? timesteps[i] <= above : timesteps[i] < above;
    if (!(timesteps[i] > 0) || !falls) {
      return absl::InvalidArgumentError(absl::StrCat(
          "timesteps[", i, "] is ", timesteps[i],
          "; timesteps must be strictly decreasing, above 0 and at most ", kTrainTimesteps));
    }
    above = timesteps[i];
  }
  FlowSchedule schedule = ExactTimesteps(timesteps, shift);
  for (double& timestep : schedule.timesteps) timestep = Rounded(timestep, rounding);
  return schedule;
}

}  // namespace wan
