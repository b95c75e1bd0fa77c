// The least time that work can take, at the highest rates that were measured on its device.
// `wan_bench ceilings --output FILE` stores these rates, one file for each device.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "benchmarks/bench_row.h"
#include "client/reports/ceilings_file.h"

namespace wan {

using client::reports::Ceilings;

// Returns the longest of three times: products plus attention, memory traffic, and copies between
// host and device. Returns nullopt if a needed rate is not known, or if there is no work.
std::optional<double> FloorSeconds(const Ceilings& ceilings, const Work& work);

// Stores the ceilings, and the measurements (`rows`) from which they come. UNAVAILABLE if the file
// cannot be written.
absl::Status WriteCeilings(const std::string& path, const Ceilings& ceilings,
                           const std::vector<BenchRow>& rows);

}  // namespace wan
