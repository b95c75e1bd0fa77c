// Finds avoidable time in a job, and the setting that removes it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "client/reports/ceilings.h"
#include "client/reports/run.h"

namespace wan::client::reports {

struct Bottleneck {
  // The stage, or part of a stage, that takes the time.
  std::string location;
  // Seconds of the job that this location takes.
  double seconds = 0;
  // Full sentences.
  std::string cause;
  std::string remedy;
  // Estimated seconds that the remedy would save; absent if unknown.
  std::optional<double> saves;
  // How `saves` was estimated.
  std::string basis;
  // The setting that the remedy changes, with the name of DifferencesOf or its beginning
  // ("residency_policies transformer" for both experts); empty: none.
  std::string setting;
  // The setting's new value; empty: any other value.
  std::string value;
  // Seconds by which runs that differ only by this remedy were faster; absent if there are none or
  // the difference may be noise (verdict.h).
  std::optional<double> measured;
  // The verdict on these runs: "faster", or why the difference proves nothing. Empty if there are
  // none.
  std::string verdict = {};
};

// Seconds that a remedy saves: as measured by runs, or else as estimated.
struct Gain {
  // Absent if unknown.
  std::optional<double> seconds;
  // How `seconds` was found, and why runs were not counted.
  std::string basis;
};
Gain GainOf(const Bottleneck& bottleneck);

// Returns the bottlenecks that cost at least half a percent of the job, the largest saving first.
// `runs` must contain `run` and may contain other runs of its case, with the same or other
// settings. `ceilings` are those of the run's device; null if unknown.
std::vector<Bottleneck> FindBottlenecks(const Run& run, const Ceilings* ceilings,
                                        const std::vector<Run>& runs);

}  // namespace wan::client::reports
