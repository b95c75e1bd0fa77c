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

// Returns the longest of three times: products and attention one after the other, the memory's
// bytes, the copies between host and device. nullopt if a rate is unknown or there is no work.
std::optional<double> FloorSeconds(const Ceilings& ceilings, const Work& work);

// `rows` are the measurements behind the ceilings. UNAVAILABLE if the file cannot be written.
absl::Status WriteCeilings(const std::string& path, const Ceilings& ceilings,
                           const std::vector<BenchRow>& rows);

}  // namespace wan
