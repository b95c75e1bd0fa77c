// The highest measured rates of a device, and the least time of work at these rates. `wan_bench
// ceilings --output FILE` keeps them, one file a device; docs/measured/performance.md has its
// fields.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "benchmarks/bench_row.h"

namespace wan {

struct Ceilings {
  std::string device;       // "NVIDIA H200", or the processor's name
  std::string software;     // versions of the libraries that were measured
  std::string measured_at;  // UTC, RFC 3339
  double seconds_each = 0;  // how long each rate was measured
  // Floating-point operations a second, by precision: "bf16", "fp16", "tf32", "fp32".
  std::map<std::string, double> products;
  std::map<std::string, double> attention;
  // Bytes a second; 0 if not measured. For the device's memory, reads and writes count.
  double memory = 0;
  double upload = 0;    // from locked host memory
  double download = 0;  // to locked host memory

  // Returns the longest of three times: products and attention one after the other, the memory's
  // bytes, the copies between host and device. nullopt if a rate is unknown or there is no work.
  std::optional<double> FloorSeconds(const Work& work) const;
};

// `rows` are the measurements behind the ceilings.
std::string ToJson(const Ceilings& ceilings, const std::vector<BenchRow>& rows);

// NOT_FOUND if there is no such file, INVALID_ARGUMENT naming the field if it has another form.
absl::StatusOr<Ceilings> ReadCeilings(const std::string& path);
absl::Status WriteCeilings(const std::string& path, const Ceilings& ceilings,
                           const std::vector<BenchRow>& rows);

}  // namespace wan
