// Finds avoidable time in a job, and the setting that removes it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "client/reports/ceilings.h"
#include "client/reports/run.h"

namespace wan::client::reports {

struct Bottleneck {
  // Name of the stage, or of the part of a stage, that takes the time.
  std::string location;
  // The seconds of the job that the stage or part takes.
  double seconds = 0;
  // Why the stage takes this time, and how to make it shorter, in full sentences.
  std::string cause;
  std::string remedy;
  // Estimated seconds that the remedy would save; absent if unknown.
  std::optional<double> saves;
  // How `saves` was estimated.
  std::string basis;
  // The setting that the remedy changes, by its name in DifferencesOf or the beginning of that name
  // ("residency_policies transformer" for both experts); empty: none.
  std::string setting;
  // The setting's new value; empty: any value that differs from the run's.
  std::string value;
  // Seconds by which runs with the remedy, and no other difference, were faster; absent without
  // comparable runs, or if the difference may be noise (verdict.h).
  std::optional<double> measured;
  // The verdict on runs that differ only by the remedy: "faster", or why the difference proves
  // nothing. Empty without comparable runs.
  std::string verdict = {};
  // Whether a caller or an operator can remove the bottleneck.
  bool has_remedy = true;
};

// The seconds that a remedy saves: as measured by runs, or otherwise as estimated.
struct Gain {
  // Absent if the number is unknown.
  std::optional<double> seconds;
  // How `seconds` was found, and why measured runs were not used.
  std::string basis;
};
Gain GainOf(const Bottleneck& bottleneck);

// Returns the bottlenecks that cost at least half a percent of the job, the largest saving first.
// `runs` must contain `run`, and may contain other runs of its case with any settings. `ceilings`
// are the ceilings of the run's device; null if unknown.
std::vector<Bottleneck> FindBottlenecks(const Run& run, const Ceilings* ceilings,
                                        const std::vector<Run>& runs);

}  // namespace wan::client::reports
