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
  // What another run, which differs from this one by that remedy alone, took less; absent without
  // such a run.
  std::optional<double> measured;
};

// Those that cost at least half a percent of the job, the one that saves most first. `others` may
// have runs of the same case with other settings; of several with the same settings the median
// counts. `ceilings` are those of the run's device; null if they are not known.
std::vector<Bottleneck> FindBottlenecks(const Run& run, const Ceilings* ceilings,
                                        const std::vector<Run>& others);

}  // namespace wan::client::reports
