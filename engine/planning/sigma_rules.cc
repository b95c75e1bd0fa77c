#include "engine/planning/sigma_rules.h"

#include <array>
#include <charconv>
#include <cstddef>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "engine/api/model_parts.h"
#include "engine/schedulers/flow_schedule.h"

namespace wan {
namespace {

constexpr double kTrainTimesteps = 1000;

// Returns a number with all its digits, because StrCat writes too few to tell close numbers apart.
std::string Exact(double number) {
  std::array<char, 32> text;
  return {text.data(), std::to_chars(text.data(), text.data() + text.size(), number).ptr};
}

// Returns the problem if two neighbouring levels are equal in fp32. `sigmas` must be strictly
// decreasing.
std::optional<std::string> ProblemOfRounding(std::span<const double> sigmas, double shift) {
  const absl::StatusOr<FlowSchedule> schedule = MakeEulerSchedule(TimestepsOf(sigmas), shift);
  if (!schedule.ok()) return std::nullopt;
  for (size_t i = 0; i < sigmas.size(); ++i) {
    if (schedule->sigmas[i] > schedule->sigmas[i + 1]) continue;
    const std::string value = absl::StrCat(Exact(sigmas[i]), " at ", i);
    if (i + 1 == sigmas.size()) {
      return absl::StrCat("has the value ", value,
                          ", which is 0 in single precision; must be greater");
    }
    return absl::StrCat("has the values ", value, " and ", Exact(sigmas[i + 1]), " at ", i + 1,
                        ", which are equal in single precision with shift ", shift,
                        "; must differ by more");
  }
  return std::nullopt;
}

}  // namespace

std::vector<double> TimestepsOf(std::span<const double> sigmas) {
  std::vector<double> timesteps;
  for (const double sigma : sigmas) timesteps.push_back(sigma * kTrainTimesteps);
  return timesteps;
}

std::optional<std::string> ProblemOfSigmas(std::span<const double> sigmas, int steps,
                                           double shift) {
  if (static_cast<int>(sigmas.size()) != steps) {
    return absl::StrCat("has ", sigmas.size(), " values; must have one for each of the ", steps,
                        " steps");
  }
  double above = 1;
  for (size_t i = 0; i < sigmas.size(); ++i) {
    // Written this way, the condition also refuses NaN.
    const bool falls = i == 0 ? sigmas[i] <= above : sigmas[i] < above;
    if (!(sigmas[i] > 0 && falls)) {
      return absl::StrCat("has the value ", sigmas[i], " at ", i,
                          "; must be at most 1, strictly falling and above 0");
    }
    above = sigmas[i];
  }
  return ProblemOfRounding(sigmas, shift);
}

std::optional<std::string> ProblemOfBoundary(int boundary_step, int steps,
                                             const ModelFamily& family) {
  if (family.experts.size() < 2) {
    return absl::StrCat("is ", boundary_step, "; must be left out, because ",
                        std::string(NameOf(family.id)), " has one expert");
  }
  if (boundary_step >= 0 && boundary_step <= steps) return std::nullopt;
  return absl::StrCat("is ", boundary_step, "; must be from 0 to the number of steps, ", steps);
}

}  // namespace wan
