// Judges a before and after: whether the difference of two sets of measurements is more than noise.
// Every statement of the reports that something saved time comes from here. All functions are pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "client/reports/run.h"

namespace wan::client::reports {

// What else the machine did during a measurement, as far as it was sampled. An absent figure
// disturbs nothing.
struct Circumstances {
  // The share of the processors that other processes used, in percent.
  std::optional<double> others_cpu_percent;
  std::optional<double> sm_clock_mhz;
  // The share of the time in which the driver held the clocks down, in percent.
  std::optional<double> throttled_percent;
  // Processes with contexts on the GPU.
  std::optional<double> gpu_processes;
};

// The means over the stages, each with the weight of its seconds.
Circumstances CircumstancesOf(const std::vector<const StageReport*>& stages);

// Equal measurements: the runs of one case and variant, or steps of one job.
struct Measured {
  // Sorted; not empty.
  std::vector<double> seconds;
  Circumstances circumstances;
  // How many runs the benchmark was to make; 0 if that is not known.
  int asked = 0;

  double median() const;
};

// All runs of the case and variant of `run`, which is one of `runs`.
Measured MeasuredRuns(const Run& run, const std::vector<Run>& runs);

// "3: 4.44 to 4.65 s", "1 of 3"; how many there are, and from where to where they go.
std::string RunsText(const Measured& measured);

struct Verdict {
  // The difference of the medians and their ratio; absent if it is not told apart from noise.
  std::optional<double> saved;
  std::optional<double> factor;
  // "faster", "slower", or "not told apart from noise: " and why.
  std::string text;
};

// A difference counts if no measurement of one side lies among those of the other, and if it is
// greater than the wider of the two ranges; if a side has fewer than three measurements, than three
// times that range. With fewer than four in all it never counts. Sides that are equal are so told
// apart in about one of twenty comparisons at most. It does not count either if the slower side
// was disturbed more: by other processes, lower clocks, or a driver that held them down.
Verdict Judge(const Measured& before, const Measured& after);

// What tables of verdicts say below them.
inline constexpr char kVerdictNote[] =
    "Each time is the median of its runs. A difference that is within the spread of the runs, or "
    "beside which the machine was disturbed, is not told apart from noise; 'wanctl bench ... "
    "--num-runs 3' makes enough runs for a spread.";

}  // namespace wan::client::reports
