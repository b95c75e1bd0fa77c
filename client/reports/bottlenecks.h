// What a job's seconds went to that they need not have gone to, and what to set.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "client/reports/ceilings.h"
#include "client/reports/run.h"

namespace wan::client::reports {

struct Bottleneck {
  // The stage or the part of it.
  std::string location;
  // What that place takes of the job.
  double seconds = 0;
  // Full sentences.
  std::string cause;
  std::string remedy;
  // The seconds of the job that the remedy would save; absent if they cannot be told.
  std::optional<double> saves;
  // How `saves` was found.
  std::string basis;
  // The setting that the remedy changes, as DifferencesOf names it, or its beginning
  // ("residency_policies transformer" of both experts); empty: none.
  std::string setting;
  // The value that it gets; empty: any other.
  std::string value;
  // What other runs, which differ from this one by that remedy alone, took less; absent without
  // such runs, and if the difference is not told apart from noise (verdict.h).
  std::optional<double> measured;
  // The verdict on such runs: "faster", or why their difference tells nothing. Empty without any.
  std::string verdict = {};
};

// The best that is known of what the remedy saves: what runs measured, otherwise the estimate.
struct Gain {
  // Absent if it cannot be told.
  std::optional<double> seconds;
  // How it was found, and what became of runs that tell nothing.
  std::string basis;
};
Gain GainOf(const Bottleneck& bottleneck);

// Those that cost at least half a percent of the job, the one that saves most first. `runs` has
// the run itself, and may have others of its case, with the same settings and with others.
// `ceilings` are those of the run's device; null if they are not known.
std::vector<Bottleneck> FindBottlenecks(const Run& run, const Ceilings* ceilings,
                                        const std::vector<Run>& runs);

}  // namespace wan::client::reports
