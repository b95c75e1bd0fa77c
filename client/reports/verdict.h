// Judges whether the difference of two sets of measurements is more than noise; reports claim
// savings only if it is. All functions are pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "client/reports/run.h"

namespace wan::client::reports {

// Other activity on the machine during a measurement. A figure that was not sampled does not count
// as a disturbance.
struct Circumstances {
  // The share of the CPUs that other processes used, in percent.
  std::optional<double> others_cpu_percent;
  std::optional<double> sm_clock_mhz;
  // The share of the time in which the driver throttled the clocks, in percent.
  std::optional<double> throttled_percent;
  // The number of processes that had contexts on the GPU.
  std::optional<double> gpu_processes;
};

// Returns the means over the stages, weighted by seconds.
Circumstances CircumstancesOf(const std::vector<const StageReport*>& stages);

// Repeated measurements: the runs of one case and variant, or the steps of one job.
struct Measured {
  // The seconds of each measurement, sorted; never empty.
  std::vector<double> seconds;
  Circumstances circumstances;
  // How many runs the benchmark planned; 0 if unknown.
  int asked = 0;

  double median() const;
};

// Returns all runs of the case and variant of `run`, which is one of `runs`.
Measured MeasuredRuns(const Run& run, const std::vector<Run>& runs);

// Returns how many measurements there are, and their range: "3: 4.44 to 4.65 s", "1 of 3".
std::string RunsText(const Measured& measured);

struct Verdict {
  // Difference and ratio of the medians; absent if the difference may be noise.
  std::optional<double> saved;
  std::optional<double> factor;
  // "faster", "slower", or "not told apart from noise: " followed by the reason.
  std::string text;
};

// A difference counts if the ranges of the two sides do not overlap and it exceeds the wider range,
// or three times that range if a side has fewer than three measurements. A difference never counts
// with fewer than four measurements in total, or if the slower side was disturbed more (by other
// processes, or by lower or throttled clocks). With these rules, comparing two sides that are
// equally fast finds a difference in at most about one of twenty cases.
Verdict Judge(const Measured& before, const Measured& after);

// The note that is printed below tables of verdicts.
inline constexpr char kVerdictNote[] =
    "Each time is the median of its runs. A difference that is within the spread of the runs, or "
    "beside which the machine was disturbed, is not told apart from noise; 'wanctl bench ... "
    "--num-runs 3' makes enough runs for a spread.";

}  // namespace wan::client::reports
