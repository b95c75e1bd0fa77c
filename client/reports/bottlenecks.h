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
  // Seconds of the job that this place takes.
  double seconds = 0;
  // Full sentences.
  std::string cause;
  std::string remedy;
  // Estimated seconds that the remedy would save; absent if unknown.
  std::optional<double> saves;
  // Says how `saves` was estimated.
  std::string basis;
  // The setting that the remedy changes, as DifferencesOf names it, or its beginning
  // ("residency_policies transformer" of both experts); empty: none.
  std::string setting;
  // The value that it gets; empty: any other.
  std::string value;
  // Seconds by which other runs, which differ from this one by that remedy alone, were faster;
  // absent without such runs, and if the difference may be noise (verdict.h).
  std::optional<double> measured;
  // The verdict on these runs: "faster", or why their difference proves nothing. Empty without such
  // runs.
  std::string verdict = {};
};

// The seconds that the remedy saves: as measured by runs, otherwise as estimated.
struct Gain {
  // Absent if unknown.
  std::optional<double> seconds;
  // Says how `seconds` was found, and why runs were not counted.
  std::string basis;
};
Gain GainOf(const Bottleneck& bottleneck);

// Returns the bottlenecks that cost at least half a percent of the job, the one that saves most
// first. `runs` has the run itself, and may have others of its case, with the same settings and
// with others. `ceilings` are those of the run's device; null if they are not known.
std::vector<Bottleneck> FindBottlenecks(const Run& run, const Ceilings* ceilings,
                                        const std::vector<Run>& runs);

}  // namespace wan::client::reports
