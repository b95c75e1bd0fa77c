#include "engine/planning/sigma_rules.h"

#include "absl/strings/str_cat.h"
#include "engine/api/model_parts.h"

namespace wan {

std::optional<std::string> ProblemOfSigmas(std::span<const double> sigmas, int steps) {
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
  return std::nullopt;
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
