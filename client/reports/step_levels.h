// Finds lasting changes of the step time.
#pragma once

#include <optional>
#include <vector>

namespace wan::client::reports {

// Consecutive steps that took equally long, except for exceptions. Steps are counted from 0.
struct StepLevel {
  int first = 0;
  int last = 0;
  // Median seconds of the steps without exceptions.
  double seconds = 0;
  // Steps between first and last that took a different time.
  std::vector<int> exceptions;
};

// The change from one level to the next.
struct LevelChange {
  // The step during which the change happened; absent if it happened between two steps.
  std::optional<int> within;
  // Indices of StepLevels::levels.
  int before = 0;
  int after = 0;
};

struct StepLevels {
  // In the order of steps; neighbours differ by more than kLevelDifference.
  std::vector<StepLevel> levels;
  std::vector<LevelChange> changes;
  // Steps before the first level, for example the first step of a cold model.
  std::vector<int> unsettled;
};

// Smallest relative difference between two levels.
inline constexpr double kLevelDifference = 0.05;

// `seconds` has the time of every step in order. A level has at least two steps; one or two steps
// between equal levels are exceptions. Fewer than three steps are one level. Pure; takes O(n^2 log
// n).
StepLevels FindStepLevels(const std::vector<double>& seconds);

}  // namespace wan::client::reports
