// Compares two reports about the same scenes.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace wan::demo {

// The mean of a difference, with its 95 % interval.
struct Difference {
  double mean = 0;
  double low = 0;
  double high = 0;

  bool certain() const { return low > 0 || high < 0; }
};

// Returns the mean of the differences between paired shares: each value is the share that is right
// in B minus the share that is right in A, for one scene, from -1 to 1; there must be at least one.
// Uses the adjustment of Agresti and Min (it adds one scene that got better and one that got worse,
// each half), so that a few scenes without any difference do not look like certainty. The unit is a
// scene, because two objects in one video are not independent.
Difference PairedShares(const std::vector<double>& differences);

// Returns the mean of the differences between paired figures, with 1.96 standard errors; if there
// is one value, the interval is endless.
Difference PairedFigures(const std::vector<double>& differences);

// Returns a Markdown table of every measure in both reports, paired by scene, with the number of
// scenes that got better and worse, and their ids. `a` and `b` are reports of `demo_evaluate run`
// or `detect`. Fails with INVALID_ARGUMENT if one of them is not a report, if they are of different
// scenes, or if they have no video in common.
absl::StatusOr<std::string> CompareReports(const nlohmann::ordered_json& a,
                                           const nlohmann::ordered_json& b);

}  // namespace wan::demo
