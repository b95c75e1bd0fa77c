// Finds where the time of a step changes to another level and stays there.
#pragma once

#include <optional>
#include <vector>

namespace wan::client::reports {

// A run of steps that took equally long, apart from exceptions. Steps are counted from 0.
struct StepLevel {
  int first = 0;
  int last = 0;
  // The median of the steps, exceptions left out.
  double seconds = 0;
  // Steps between first and last that took a different time.
  std::vector<int> exceptions;
};

// The change from one level to the next.
struct LevelChange {
  // The step in which it happened, whose time lies between the two levels; absent if it happened
  // between two steps.
  std::optional<int> within;
  // Indices of StepLevels::levels.
  int before = 0;
  int after = 0;
};

struct StepLevels {
  // In order; neighbours differ by more than kLevelDifference.
  std::vector<StepLevel> levels;
  std::vector<LevelChange> changes;
  // Steps before the first level, which belong to none: the first step of a cold model.
  std::vector<int> unsettled;
};

// The smallest difference between two levels, as a part of the lower one.
inline constexpr double kLevelDifference = 0.05;

// `seconds` has the time of every step in order. A level has at least two steps; one or two steps
// between equal levels are exceptions. Pure; fewer than three steps have one level. Takes O(n^2 log
// n) for n steps.
StepLevels FindStepLevels(const std::vector<double>& seconds);

}  // namespace wan::client::reports
