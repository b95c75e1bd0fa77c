// Two reports of the same scenes, side by side.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace wan::demo {

// A mean with its 95 % interval.
struct Difference {
  double mean = 0;
  double low = 0;
  double high = 0;

  bool certain() const { return low > 0 || high < 0; }
};

// Of paired shares: each value is one scene's share right in B less that in A, from -1 to 1; not
// empty. By Agresti and Min's adjustment (one more scene that got better and one that got worse,
// half each), so that few scenes without any difference do not pass for certainty. A scene is the
// unit, since two objects of one video are not independent.
Difference PairedShares(const std::vector<double>& differences);

// Of paired figures: the mean and 1.96 standard errors; one value has an endless interval.
Difference PairedFigures(const std::vector<double>& differences);

// A Markdown table of every measure in both, paired by scene, with the number of scenes that got
// better and worse, and their ids. `a` and `b` are reports of
// `demo_evaluate run` or `detect`. INVALID_ARGUMENT if one is no report, they are of
// different scenes, or have no video in common.
absl::StatusOr<std::string> CompareReports(const nlohmann::ordered_json& a,
                                           const nlohmann::ordered_json& b);

}  // namespace wan::demo
