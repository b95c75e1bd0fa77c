#include "client/reports/step_changes.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "client/reports/document.h"
#include "client/reports/run.h"

namespace wan::client::reports {
namespace {

using Steps = std::vector<const StageReport*>;

// Returns the steps of one level, except the level's exceptions.
Steps StepsOf(const Steps& steps, const StepLevel& level) {
  Steps chosen;
  for (int i = level.first; i <= level.last; ++i) {
    if (std::find(level.exceptions.begin(), level.exceptions.end(), i) == level.exceptions.end()) {
      chosen.push_back(steps[i]);
    }
  }
  return chosen;
}

// Returns the median of a figure over those steps that have it.
std::optional<double> Typical(const Steps& steps, StageFigure figure) {
  std::vector<double> values;
  for (const StageReport* step : steps) {
    if (const std::optional<double> value = figure(*step)) values.push_back(*value);
  }
  if (values.empty()) return std::nullopt;
  std::nth_element(values.begin(), values.begin() + static_cast<ptrdiff_t>(values.size() / 2),
                   values.end());
  return values[values.size() / 2];
}

std::set<std::string> Reasons(const Steps& steps) {
  std::set<std::string> reasons;
  for (const StageReport* step : steps) {
    reasons.insert(step->throttle_reasons().begin(), step->throttle_reasons().end());
  }
  return reasons;
}

std::string Expert(const Steps& steps) { return steps.empty() ? "" : steps.front()->expert(); }

int Forwards(const Steps& steps) {
  if (steps.empty()) return 0;
  return static_cast<int>(std::count_if(
      steps.front()->parts().begin(), steps.front()->parts().end(),
      [](const wan::v1::StagePart& part) { return part.name().starts_with("forward"); }));
}

std::string Percent(double before, double after) {
  return absl::StrFormat("%+.0f %%", (after / before - 1) * 100);
}

std::optional<double> GpuProcesses(const StageReport& stage) {
  return stage.has_gpu_processes() ? std::optional<double>(stage.gpu_processes()) : std::nullopt;
}

// Joins names: "a", "a and b", or "a, b, and c".
std::string Listed(const std::vector<std::string>& names) {
  if (names.size() < 3) return absl::StrJoin(names, " and ");
  return absl::StrCat(absl::StrJoin(names.begin(), names.end() - 1, ", "), ", and ", names.back());
}

class Explainer {
 public:
  Explainer(const Steps& before, const Steps& after, bool on_cpu, StepChange& change)
      : before_(before), after_(after), on_cpu_(on_cpu), change_(change) {}

  void Explain() {
    if (FromTheJob()) return;
    Clocks();
    Throttling();
    Power();
    OtherProcesses();
    Processors();
    if (causes_ == 0) Unexplained();
  }

 private:
  void Say(std::string sentence) {
    change_.explanation.push_back(std::move(sentence));
    ++causes_;
  }

  bool FromTheJob() {
    if (Expert(before_) != Expert(after_)) {
      Say(absl::StrCat("The expert '", Expert(after_), "' computes from there on."));
      change_.from_outside = false;
    } else if (Forwards(before_) != Forwards(after_)) {
      Say(absl::StrFormat("A step has %d forwards there instead of %d.", Forwards(after_),
                          Forwards(before_)));
      change_.from_outside = false;
    }
    return !change_.from_outside;
  }

  void Clocks() {
    const StageFigure memory = [](const StageReport& stage) {
      return stage.has_memory_clock_mhz() ? std::optional<double>(stage.memory_clock_mhz())
                                          : std::nullopt;
    };
    Compare("The SM clock", "MHz", SmClock);
    Compare("The memory clock", "MHz", memory);
  }

  void Compare(const std::string& what, const std::string& unit, StageFigure figure) {
    const std::optional<double> before = Typical(before_, figure), after = Typical(after_, figure);
    if (!before || !after || *before <= 0) return;
    const double ratio = *after / *before;
    const bool slower = change_.seconds_after > change_.seconds_before;
    // Ignore changes in the wrong direction: a higher clock does not make steps slower.
    if (slower ? ratio > 1 - kNotable : ratio < 1 + kNotable) return;
    Say(absl::StrFormat("%s went from %.0f to %.0f %s (%s).", what, *before, *after, unit,
                        Percent(*before, *after)));
  }

  void Throttling() {
    const std::set<std::string> before = Reasons(before_), after = Reasons(after_);
    std::vector<std::string> began, ended;
    std::set_difference(after.begin(), after.end(), before.begin(), before.end(),
                        std::back_inserter(began));
    std::set_difference(before.begin(), before.end(), after.begin(), after.end(),
                        std::back_inserter(ended));
    if (!began.empty()) {
      Say(absl::StrCat(
          "The driver held the clocks down from there on: ", absl::StrJoin(began, ", "), "."));
    }
    if (!ended.empty()) {
      Say(absl::StrCat("The driver no longer held the clocks down: ", absl::StrJoin(ended, ", "),
                       " had ended."));
    }
    const StageFigure heat = [](const StageReport& stage) {
      return stage.has_temperature_peak_celsius()
                 ? std::optional<double>(stage.temperature_peak_celsius())
                 : std::nullopt;
    };
    const std::optional<double> cool = Typical(before_, heat), hot = Typical(after_, heat);
    if (causes_ > 0 && cool && hot && std::abs(*hot - *cool) >= 3) {
      Say(absl::StrFormat("The GPU's temperature went from %.0f to %.0f degrees Celsius.", *cool,
                          *hot));
    }
  }

  // Explains a change of power, which depends on both work and clocks.
  void Power() {
    const std::optional<double> before = Typical(before_, PowerWatts),
                                after = Typical(after_, PowerWatts);
    if (!before || !after || *before <= 0) return;
    const double ratio = *after / *before;
    if (std::abs(ratio - 1) < kNotable) return;
    const std::string what = absl::StrFormat("The card drew %.0f W instead of %.0f W (%s)", *after,
                                             *before, Percent(*before, *after));
    const char* const clocks =
        Typical(before_, SmClock) && Typical(after_, SmClock) ? " at the same clocks" : "";
    const bool slower = change_.seconds_after > change_.seconds_before;
    const bool less = ratio < 1;
    const std::set<std::string> reasons = Reasons(slower ? after_ : before_);
    const bool held = reasons.contains("power cap") || reasons.contains("power brake");
    if (slower == less && held) {
      Say(absl::StrCat(
          what,
          less ? ", and the driver held it to less: " : ", since the driver had held it to less: ",
          absl::StrJoin(reasons, ", "), "."));
    } else if (slower == less && causes_ > 0) {
      Say(absl::StrCat(what, ", which follows from that."));
    } else if (slower && less) {
      Say(absl::StrCat(what, clocks,
                       ": its SMs waited, for memory, for the machine's bus or for another "
                       "process."));
    } else if (slower) {
      Say(absl::StrCat(what, " while a step took longer: something else computed on it as well."));
    } else if (less) {
      Say(absl::StrCat(what,
                       " while a step took less time: something else that computed on it had "
                       "ended."));
    } else {
      Say(absl::StrCat(what, clocks, ": its SMs no longer waited."));
    }
  }

  void OtherProcesses() {
    const std::optional<double> before = Typical(before_, GpuProcesses),
                                after = Typical(after_, GpuProcesses);
    if (before && after && *before != *after) {
      Say(absl::StrFormat("%.0f processes used the GPU instead of %.0f.", *after, *before));
    }
    // Returns the GPU memory that other processes use.
    const StageFigure others = [](const StageReport& stage) {
      if (!stage.has_gpu_memory_used_bytes() || !stage.has_gpu_memory_reserved_peak_bytes()) {
        return std::optional<double>();
      }
      return std::optional<double>(static_cast<double>(stage.gpu_memory_used_bytes()) -
                                   static_cast<double>(stage.gpu_memory_reserved_peak_bytes()));
    };
    const std::optional<double> less = Typical(before_, others), more = Typical(after_, others);
    if (less && more && std::abs(*more - *less) > 0.5 * kGibibyte) {
      Say(absl::StrFormat("Other users of the GPU held %.1f GiB %s.",
                          std::abs(*more - *less) / kGibibyte, *more > *less ? "more" : "less"));
    }
  }

  // Returns the share of the CPUs that other processes use, in percent.
  static std::optional<double> OthersPercent(const StageReport& stage) {
    if (!stage.has_cpu_percent() || !stage.has_process_cpu_percent()) return std::nullopt;
    return stage.cpu_percent() - stage.process_cpu_percent();
  }

  void Processors() {
    const std::optional<double> before = Typical(before_, OthersPercent),
                                after = Typical(after_, OthersPercent);
    if (!before || !after) return;
    const bool slower = change_.seconds_after > change_.seconds_before;
    if (slower ? *after - *before < 10 : *before - *after < 10) return;
    Say(absl::StrFormat(
        "Other processes used %.0f %% of the machine's processors instead of %.0f %%.", *after,
        *before));
  }

  void UnexplainedOnCpu() {
    const std::optional<double> before = Typical(before_, OthersPercent),
                                after = Typical(after_, OthersPercent);
    if (!before || !after) {
      change_.explanation.emplace_back(
          "The report has no samples of the processors' use, which would tell.");
      return;
    }
    change_.explanation.push_back(
        absl::StrFormat("Other processes used %.0f %% of the machine's processors before and %.0f "
                        "%% after, which does not explain it; their clocks, and what others move "
                        "through memory and caches, are not sampled.",
                        *before, *after));
  }

  void Unexplained() {
    if (on_cpu_) {
      UnexplainedOnCpu();
      return;
    }
    const std::optional<double> before = Typical(before_, SmActivity),
                                after = Typical(after_, SmActivity);
    if (before && after && *before > 90 && *after > 90) {
      change_.explanation.push_back(
          absl::StrFormat("SM activity was full before and after (%.1f and %.1f %%), so the SMs "
                          "were given less or more to one step, or "
                          "ran at other clocks.",
                          *before, *after));
    }
    std::vector<std::string> missing;
    const auto lacks = [this](StageFigure figure) {
      return !Typical(before_, figure) || !Typical(after_, figure);
    };
    if (lacks(SmClock)) missing.emplace_back("clocks and their limits");
    if (lacks(PowerWatts)) missing.emplace_back("power");
    if (lacks(GpuProcesses)) missing.emplace_back("other processes on the GPU");
    change_.explanation.push_back(
        missing.empty() ? "Clocks, their limits, power and the number of processes on the GPU "
                          "stayed as they were; what is left is "
                          "work that another process submits in the same number of contexts, or on "
                          "the machine's bus."
                        : absl::StrCat("The report has no samples of ", Listed(missing),
                                       ", which would tell."));
  }

  const Steps& before_;
  const Steps& after_;
  const bool on_cpu_;
  StepChange& change_;
  int causes_ = 0;
};

std::set<int> ReusedSteps(const wan::v1::JobReport& report, const Steps& steps) {
  std::set<int> reused(report.plan().reused_steps().begin(), report.plan().reused_steps().end());
  for (const StageReport* step : steps) {
    if (step->parts().empty()) continue;
    const int number = ParseStage(step->stage()).step;
    reused.erase(number);
    for (const wan::v1::StagePart& part : step->parts()) {
      if (part.name().starts_with("reuse")) reused.insert(number);
    }
  }
  return reused;
}

StepLevels LevelsOf(const StepHistory& history) {
  std::vector<int> computed;
  std::vector<double> seconds;
  for (size_t i = 0; i < history.seconds.size(); ++i) {
    if (history.reused.contains(history.numbers[i])) continue;
    computed.push_back(static_cast<int>(i));
    seconds.push_back(history.seconds[i]);
  }
  StepLevels levels = FindStepLevels(seconds);
  const auto place = [&](int& step) { step = computed[static_cast<size_t>(step)]; };
  for (StepLevel& level : levels.levels) {
    place(level.first);
    place(level.last);
    for (int& exception : level.exceptions) place(exception);
    for (int i = level.first; i <= level.last; ++i) {
      if (history.reused.contains(history.numbers[static_cast<size_t>(i)])) {
        level.exceptions.push_back(i);
      }
    }
    std::sort(level.exceptions.begin(), level.exceptions.end());
  }
  for (LevelChange& change : levels.changes) {
    if (change.within) place(*change.within);
  }
  for (int& step : levels.unsettled) place(step);
  return levels;
}

}  // namespace

double StepHistory::RegularSeconds() const {
  const auto longest = std::max_element(
      levels.levels.begin(), levels.levels.end(),
      [](const StepLevel& a, const StepLevel& b) { return a.last - a.first < b.last - b.first; });
  return longest == levels.levels.end() ? 0 : longest->seconds;
}

StepHistory StepHistoryOf(const wan::v1::JobReport& report) {
  StepHistory history;
  const Steps steps = FindStages(report, StageKind::kInference);
  for (const StageReport* step : steps) {
    history.seconds.push_back(step->seconds());
    history.numbers.push_back(ParseStage(step->stage()).step);
  }
  history.reused = ReusedSteps(report, steps);
  history.levels = LevelsOf(history);
  for (const LevelChange& at : history.levels.changes) {
    const StepLevel& before = history.levels.levels[at.before];
    const StepLevel& after = history.levels.levels[at.after];
    StepChange change;
    change.step = history.numbers[after.first];
    change.last = history.numbers[after.last];
    change.seconds_before = before.seconds;
    change.seconds_after = after.seconds;
    change.explanation.push_back(absl::StrFormat(
        "Steps %d to %d took %.2f s each instead of %.2f s (%s)%s.", change.step, change.last,
        after.seconds, before.seconds, Percent(before.seconds, after.seconds),
        at.within ? absl::StrFormat("; it began within step %d", history.numbers[*at.within])
                  : std::string()));
    const Steps steps_before = StepsOf(steps, before), steps_after = StepsOf(steps, after);
    Explainer(steps_before, steps_after, absl::StartsWith(report.device(), "cpu"), change)
        .Explain();
    if (change.from_outside) {
      for (const StageReport* step : steps_after) {
        change.extra_seconds += step->seconds() - before.seconds;
      }
      if (at.within) {
        change.extra_seconds += history.seconds[static_cast<size_t>(*at.within)] - before.seconds;
      }
    }
    history.changes.push_back(std::move(change));
  }
  return history;
}

std::string StepsText(const std::set<int>& steps, const std::string& before,
                      const std::string& after) {
  std::string text;
  const auto add = [&](const char* separator, int step) {
    absl::StrAppend(&text, text.empty() ? "" : separator, before, step, after);
  };
  for (auto first = steps.begin(); first != steps.end();) {
    auto last = first;
    while (std::next(last) != steps.end() && *std::next(last) == *last + 1) ++last;
    add(", ", *first);
    if (*last > *first) add(*last == *first + 1 ? ", " : " to ", *last);
    first = std::next(last);
  }
  return text;
}

}  // namespace wan::client::reports
