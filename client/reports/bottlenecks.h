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
  // How many seconds of the job are spent there.
  double seconds = 0;
  // Why it takes this time and what to do, in full sentences.
  std::string cause;
  std::string remedy;
  // How many seconds the remedy would save, as estimated; absent if unknown.
  std::optional<double> saves;
  // How `saves` was estimated.
  std::string basis;
  // The setting that the remedy changes, by its name in DifferencesOf or the beginning of that name
  // ("residency_policies transformer" for both experts); empty: none.
  std::string setting;
  // The setting's new value; empty: any other value than now.
  std::string value;
  // Seconds by which runs that differ only by this remedy were faster; absent if there are none or
  // the difference may be noise (verdict.h).
  std::optional<double> measured;
  // The verdict on these runs: "faster", or why the difference proves nothing. Empty if there are
  // no such runs.
  std::string verdict = {};
  // Whether there is anything that a caller or an operator can do about it.
  bool has_remedy = true;
};

// How many seconds a remedy saves: as measured by runs, or otherwise as estimated.
struct Gain {
  // Absent if the number is unknown.
  std::optional<double> seconds;
  // How `seconds` was found, and why runs were not counted.
  std::string basis;
};
Gain GainOf(const Bottleneck& bottleneck);

// Returns the bottlenecks that cost at least half a percent of the job, the largest saving first.
// `runs` must contain `run` and may contain other runs of its case, with the same or other
// settings. `ceilings` are the ceilings of the run's device; null if unknown.
std::vector<Bottleneck> FindBottlenecks(const Run& run, const Ceilings* ceilings,
                                        const std::vector<Run>& runs);

}  // namespace wan::client::reports
