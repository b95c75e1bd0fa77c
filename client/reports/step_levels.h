// Finds lasting changes of the step time.
#pragma once

#include <optional>
#include <vector>

namespace wan::client::reports {

// A series of consecutive steps that took equally long, except for a few exceptions. Steps are
// counted from 0.
struct StepLevel {
  int first = 0;
  int last = 0;
  // Median of the seconds that these steps took, without the steps in `exceptions`.
  double seconds = 0;
  // The numbers of the steps between `first` and `last` whose time differs from `seconds` too much
  // for this level.
  std::vector<int> exceptions;
};

// The change from one level to the next one.
struct LevelChange {
  // The step during which the change happened; absent if it happened between two steps.
  std::optional<int> within;
  // The indices of the two levels in StepLevels::levels.
  int before = 0;
  int after = 0;
};

struct StepLevels {
  // The levels in the order of their steps; neighbours differ by more than kLevelDifference.
  std::vector<StepLevel> levels;
  std::vector<LevelChange> changes;
  // The steps before the first level, for example the first step of a cold model.
  std::vector<int> unsettled;
};

// Smallest relative difference between two levels.
inline constexpr double kLevelDifference = 0.05;

// Divides the steps of a job into levels; `seconds` has the time of every step in order. A level
// has at least two steps. One or two steps between steps of equal levels are exceptions, not a
// level. A job of fewer than three steps has one level. This is a pure function that takes O(n^2
// log n) time for n steps.
StepLevels FindStepLevels(const std::vector<double>& seconds);

}  // namespace wan::client::reports
