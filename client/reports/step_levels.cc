#include "client/reports/step_levels.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <queue>

namespace wan::client::reports {
namespace {

double Median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  return (*middle + *std::max_element(values.begin(), middle)) / 2;
}

// Keeps the sum of distances to the median while values are added.
class MedianDeviation {
 public:
  double Add(double value) {
    if (low_.empty() || value <= low_.top()) {
      low_.push(value);
      low_sum_ += value;
    } else {
      high_.push(value);
      high_sum_ += value;
    }
    if (low_.size() > high_.size() + 1) {
      high_.push(low_.top());
      high_sum_ += low_.top();
      low_sum_ -= low_.top();
      low_.pop();
    } else if (high_.size() > low_.size()) {
      low_.push(high_.top());
      low_sum_ += high_.top();
      high_sum_ -= high_.top();
      high_.pop();
    }
    const double median = low_.top();
    return median * static_cast<double>(low_.size()) - low_sum_ + high_sum_ -
           median * static_cast<double>(high_.size());
  }

 private:
  std::priority_queue<double> low_;
  std::priority_queue<double, std::vector<double>, std::greater<>> high_;
  double low_sum_ = 0;
  double high_sum_ = 0;
};

// Divides the series into segments so that the sum of the distances to the segments' medians, plus
// `price` for each segment, is least. Returns the index at which each segment begins.
std::vector<int> Segments(const std::vector<double>& series, double price) {
  const int count = static_cast<int>(series.size());
  std::vector<double> best(count + 1, std::numeric_limits<double>::infinity());
  std::vector<int> next(count, count);
  best[count] = 0;
  for (int first = count - 1; first >= 0; --first) {
    MedianDeviation deviation;
    for (int end = first + 1; end <= count; ++end) {
      const double cost = deviation.Add(series[end - 1]);
      // More values can only increase the cost, so stop here.
      if (cost + price >= best[first]) break;
      if (cost + price + best[end] < best[first]) {
        best[first] = cost + price + best[end];
        next[first] = end;
      }
    }
  }
  std::vector<int> starts;
  for (int at = 0; at < count; at = next[at]) starts.push_back(at);
  return starts;
}

double Distance(double a, double b) { return std::max(a, b) / std::min(a, b) - 1; }

// Returns those levels that have at least two steps.
std::vector<StepLevel> LongLevels(const std::vector<double>& seconds,
                                  const std::vector<int>& starts) {
  std::vector<StepLevel> levels;
  for (size_t i = 0; i < starts.size(); ++i) {
    const int first = starts[i];
    const int end = i + 1 < starts.size() ? starts[i + 1] : static_cast<int>(seconds.size());
    if (end - first < 2) continue;
    levels.push_back(
        {first, end - 1, Median({seconds.begin() + first, seconds.begin() + end}), {}});
  }
  return levels;
}

// Maximum number of steps between two equal levels that still count as exceptions.
int LongestException(int steps) { return std::max(2, steps / 20); }

// Joins two levels; the steps between them become exceptions.
StepLevel Joined(const StepLevel& a, const StepLevel& b, const std::vector<double>& seconds) {
  StepLevel joined{a.first, b.last, 0, a.exceptions};
  for (int step = a.last + 1; step < b.first; ++step) joined.exceptions.push_back(step);
  joined.exceptions.insert(joined.exceptions.end(), b.exceptions.begin(), b.exceptions.end());
  std::vector<double> regular;
  for (int step = joined.first; step <= joined.last; ++step) {
    if (!std::binary_search(joined.exceptions.begin(), joined.exceptions.end(), step)) {
      regular.push_back(seconds[step]);
    }
  }
  joined.seconds = Median(std::move(regular));
  return joined;
}

void JoinEqualNeighbours(std::vector<StepLevel>& levels, const std::vector<double>& seconds) {
  const int longest = LongestException(static_cast<int>(seconds.size()));
  while (true) {
    // Join the most similar levels first, so that the result does not depend on the order.
    double least = kLevelDifference;
    size_t at = levels.size();
    for (size_t i = 0; i + 1 < levels.size(); ++i) {
      const double distance = Distance(levels[i].seconds, levels[i + 1].seconds);
      if (distance <= least && levels[i + 1].first - levels[i].last - 1 <= longest) {
        least = distance;
        at = i;
      }
    }
    if (at == levels.size()) return;
    levels[at] = Joined(levels[at], levels[at + 1], seconds);
    levels.erase(levels.begin() + static_cast<ptrdiff_t>(at) + 1);
  }
}

// Makes a short level between two equal ones an exception of these.
void AbsorbInterruptions(std::vector<StepLevel>& levels, const std::vector<double>& seconds) {
  const int longest = LongestException(static_cast<int>(seconds.size()));
  for (size_t i = 1; i + 1 < levels.size();) {
    const StepLevel& before = levels[i - 1];
    const StepLevel& after = levels[i + 1];
    if (after.first - before.last - 1 <= longest &&
        Distance(before.seconds, after.seconds) <= kLevelDifference) {
      levels[i - 1] = Joined(before, after, seconds);
      levels.erase(levels.begin() + static_cast<ptrdiff_t>(i),
                   levels.begin() + static_cast<ptrdiff_t>(i) + 2);
    } else {
      ++i;
    }
  }
}

// Adds single steps next to a level to the level if they took equally long.
void Extend(std::vector<StepLevel>& levels, const std::vector<double>& seconds) {
  const int count = static_cast<int>(seconds.size());
  const int longest = LongestException(count);
  for (size_t i = 0; i < levels.size(); ++i) {
    StepLevel& level = levels[i];
    const int end = i + 1 < levels.size() ? levels[i + 1].first : count;
    for (int step = level.last + 1; step < end && step - level.last - 1 <= longest; ++step) {
      if (Distance(seconds[step], level.seconds) > kLevelDifference) continue;
      for (int other = level.last + 1; other < step; ++other) level.exceptions.push_back(other);
      level.last = step;
    }
  }
}

std::vector<double> Logarithms(const std::vector<double>& seconds) {
  std::vector<double> logarithms;
  logarithms.reserve(seconds.size());
  for (const double value : seconds) logarithms.push_back(std::log(std::max(value, 1e-6)));
  return logarithms;
}

// Estimates how much neighbouring steps usually differ.
double Noise(const std::vector<double>& logarithms) {
  std::vector<double> differences;
  for (size_t i = 1; i < logarithms.size(); ++i) {
    differences.push_back(std::abs(logarithms[i] - logarithms[i - 1]));
  }
  // The factor 1.4826 converts the median of distances to a standard deviation; a difference has
  // the variance of two steps.
  return 1.4826 * Median(std::move(differences)) / std::sqrt(2.0);
}

}  // namespace

StepLevels FindStepLevels(const std::vector<double>& seconds) {
  StepLevels found;
  const int count = static_cast<int>(seconds.size());
  if (count == 0) return found;
  if (count < 3) {
    found.levels.push_back({0, count - 1, Median(seconds), {}});
    return found;
  }
  const std::vector<double> logarithms = Logarithms(seconds);
  const double price = std::max(0.045, 5 * Noise(logarithms));
  found.levels = LongLevels(seconds, Segments(logarithms, price));
  if (found.levels.empty()) {
    // No two neighbouring steps took equally long, so all steps become one level.
    found.levels.push_back({0, count - 1, Median(seconds), {}});
    return found;
  }
  JoinEqualNeighbours(found.levels, seconds);
  AbsorbInterruptions(found.levels, seconds);
  JoinEqualNeighbours(found.levels, seconds);
  Extend(found.levels, seconds);
  for (int step = 0; step < found.levels.front().first; ++step) found.unsettled.push_back(step);
  // The steps after the last level are too few for a level of their own.
  for (int step = found.levels.back().last + 1; step < count; ++step) {
    found.levels.back().exceptions.push_back(step);
    found.levels.back().last = step;
  }
  for (size_t i = 0; i + 1 < found.levels.size(); ++i) {
    const StepLevel& before = found.levels[i];
    const StepLevel& after = found.levels[i + 1];
    LevelChange change{std::nullopt, static_cast<int>(i), static_cast<int>(i) + 1};
    if (after.first > before.last + 1) change.within = before.last + 1;
    found.changes.push_back(change);
  }
  return found;
}

}  // namespace wan::client::reports
