#include "client/reports/verdict.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

namespace wan::client::reports {
namespace {

// The range is multiplied by this if a side has fewer than three measurements.
constexpr size_t kEnoughOfASide = 3;
constexpr double kFactorOfFewer = 3;
constexpr size_t kFewestInAll = 4;
// Up to this percentage of the CPUs, or of the time, activity does not count as a disturbance.
constexpr double kQuiet = 5;

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return (values[(values.size() - 1) / 2] + values[values.size() / 2]) / 2;
}

double Range(const Measured& measured) {
  return measured.seconds.back() - measured.seconds.front();
}

std::optional<double> OthersCpu(const StageReport& stage) {
  if (!stage.has_cpu_percent() || !stage.has_process_cpu_percent()) return std::nullopt;
  return std::max(0.0, stage.cpu_percent() - stage.process_cpu_percent());
}

std::optional<double> Throttled(const StageReport& stage) {
  if (!stage.has_throttled_seconds() || stage.seconds() <= 0) return std::nullopt;
  return std::min(100.0, 100 * stage.throttled_seconds() / stage.seconds());
}

std::optional<double> GpuProcesses(const StageReport& stage) {
  return stage.has_gpu_processes() ? std::optional<double>(stage.gpu_processes()) : std::nullopt;
}

// Returns the figures of the whole job; where these are missing, those of its steps.
Circumstances OfJob(const wan::v1::JobReport& report) {
  Circumstances of_steps = CircumstancesOf(FindStages(report, StageKind::kInference));
  const Circumstances of_job = CircumstancesOf(FindStages(report, StageKind::kTotal));
  if (of_job.others_cpu_percent) of_steps.others_cpu_percent = of_job.others_cpu_percent;
  // Prefer the clocks of the steps, because clocks fall while the GPU waits, for example while the
  // file is written.
  const auto fill = [](std::optional<double>& figure, const std::optional<double>& other) {
    if (!figure) figure = other;
  };
  fill(of_steps.sm_clock_mhz, of_job.sm_clock_mhz);
  fill(of_steps.throttled_percent, of_job.throttled_percent);
  fill(of_steps.gpu_processes, of_job.gpu_processes);
  return of_steps;
}

// Describes the activity that has disturbed `slow` more than `fast`. `before` says whether the slow
// side is the one before the change.
std::vector<std::string> Disturbances(const Circumstances& slow, const Circumstances& fast,
                                      bool before) {
  std::vector<std::string> found;
  // Returns both figures as text: "31 before and 4 after".
  const auto both = [before](double of_slow, double of_fast) {
    return absl::StrFormat("%.0f before and %.0f after", before ? of_slow : of_fast,
                           before ? of_fast : of_slow);
  };
  const auto more = [](const std::optional<double>& a, const std::optional<double>& b, double by) {
    return a && b && *a - *b > by;
  };
  if (more(slow.others_cpu_percent, fast.others_cpu_percent, kQuiet)) {
    found.push_back(absl::StrCat("other processes used this share of the processors, in percent: ",
                                 both(*slow.others_cpu_percent, *fast.others_cpu_percent)));
  }
  if (slow.sm_clock_mhz && fast.sm_clock_mhz &&
      *slow.sm_clock_mhz < *fast.sm_clock_mhz * (1 - kNotable)) {
    found.push_back(
        absl::StrCat("the SM clock was, in MHz: ", both(*slow.sm_clock_mhz, *fast.sm_clock_mhz)));
  }
  if (more(slow.throttled_percent, fast.throttled_percent, kQuiet)) {
    found.push_back(
        absl::StrCat("the driver held the clocks down in this share of the time, in percent: ",
                     both(*slow.throttled_percent, *fast.throttled_percent)));
  }
  if (more(slow.gpu_processes, fast.gpu_processes, 0.5)) {
    found.push_back(
        absl::StrCat("processes on the GPU: ", both(*slow.gpu_processes, *fast.gpu_processes)));
  }
  return found;
}

// Returns why the difference may lie within the spread of the runs; empty if it does not.
std::string WithinTheSpread(const Measured& before, const Measured& after) {
  const size_t fewer = std::min(before.seconds.size(), after.seconds.size());
  if (before.seconds.size() + after.seconds.size() < kFewestInAll) {
    return absl::StrCat(before.seconds.size(), " and ", after.seconds.size(),
                        " measurements are too few to know their spread");
  }
  if (before.seconds.front() <= after.seconds.back() &&
      after.seconds.front() <= before.seconds.back()) {
    return "the two sides overlap";
  }
  const double factor = fewer < kEnoughOfASide ? kFactorOfFewer : 1;
  const double range = std::max(Range(before), Range(after));
  const double difference = std::abs(before.median() - after.median());
  if (difference > factor * range) return "";
  return absl::StrFormat("the difference of %.2f s is not greater than %stheir range of %.2f s",
                         difference, factor > 1 ? "three times " : "", range);
}

}  // namespace

Circumstances CircumstancesOf(const std::vector<const StageReport*>& stages) {
  return {WeightedMean(stages, OthersCpu), WeightedMean(stages, SmClock),
          WeightedMean(stages, Throttled), WeightedMean(stages, GpuProcesses)};
}

double Measured::median() const { return Median(seconds); }

Measured MeasuredRuns(const Run& run, const std::vector<Run>& runs) {
  Measured measured;
  std::vector<double> others, clocks, throttled, processes;
  const auto keep = [](const std::optional<double>& figure, std::vector<double>& figures) {
    if (figure) figures.push_back(*figure);
  };
  for (const Run& other : runs) {
    if (other.name != run.name || other.variant != run.variant) continue;
    measured.seconds.push_back(TotalSeconds(other.report));
    const Circumstances circumstances = OfJob(other.report);
    keep(circumstances.others_cpu_percent, others);
    keep(circumstances.sm_clock_mhz, clocks);
    keep(circumstances.throttled_percent, throttled);
    keep(circumstances.gpu_processes, processes);
    const auto& labels = other.report.request().labels();
    const auto asked = labels.find(kRunsLabel);
    if (asked == labels.end()) continue;
    std::from_chars(asked->second.data(), asked->second.data() + asked->second.size(),
                    measured.asked);
  }
  std::sort(measured.seconds.begin(), measured.seconds.end());
  const auto median = [](const std::vector<double>& figures) {
    return figures.empty() ? std::nullopt : std::optional<double>(Median(figures));
  };
  measured.circumstances = {median(others), median(clocks), median(throttled), median(processes)};
  return measured;
}

std::string RunsText(const Measured& measured) {
  const int runs = static_cast<int>(measured.seconds.size());
  std::string text = absl::StrCat(runs);
  if (measured.asked > runs) absl::StrAppend(&text, " of ", measured.asked);
  if (runs > 1) {
    absl::StrAppendFormat(&text, ": %.2f to %.2f s", measured.seconds.front(),
                          measured.seconds.back());
  }
  return text;
}

Verdict Judge(const Measured& before, const Measured& after) {
  const double slow = before.median(), fast = after.median();
  std::vector<std::string> reasons;
  if (std::string spread = WithinTheSpread(before, after); !spread.empty()) {
    reasons.push_back(std::move(spread));
  }
  const std::vector<std::string> disturbances =
      slow > fast ? Disturbances(before.circumstances, after.circumstances, true)
                  : Disturbances(after.circumstances, before.circumstances, false);
  reasons.insert(reasons.end(), disturbances.begin(), disturbances.end());
  if (!reasons.empty()) {
    return {std::nullopt, std::nullopt,
            absl::StrCat("not told apart from noise: ", absl::StrJoin(reasons, "; "))};
  }
  Verdict verdict{slow - fast, std::nullopt, slow > fast ? "faster" : "slower"};
  if (fast > 0) verdict.factor = slow / fast;
  return verdict;
}

}  // namespace wan::client::reports
