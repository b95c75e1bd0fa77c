// The least time that work can take at the highest rates that its device was measured to give.
// `wan_bench ceilings --output FILE` keeps the rates, one file a device;
// docs/measured/performance.md has its fields.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "benchmarks/bench_row.h"
#include "client/reports/ceilings_file.h"

namespace wan {

using client::reports::Ceilings;

// Returns the time of products and attention one after the other, or that of the memory's bytes if
// it is longer, or that of the copies between host and device if that is longer still. nullopt if a
// rate is not known, or if there is no work.
std::optional<double> FloorSeconds(const Ceilings& ceilings, const Work& work);

// `rows` are what the ceilings were taken from. UNAVAILABLE if the file cannot be written.
absl::Status WriteCeilings(const std::string& path, const Ceilings& ceilings,
                           const std::vector<BenchRow>& rows);

}  // namespace wan
