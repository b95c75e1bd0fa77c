// The highest rates that a device was measured to give, and the least time that work can take with
// them. `wan_bench ceilings --output FILE` keeps them, one file a device;
// docs/measured/performance.md has its fields.
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
  // Bytes a second; 0 if not measured. The device's memory counts reading and writing.
  double memory = 0;
  double upload = 0;    // from locked host memory
  double download = 0;  // to locked host memory

  // Returns the time of products and attention one after the other, or that of the memory's bytes
  // if it is longer, or that of the copies between host and device if that is longer still. nullopt
  // if a rate is not known, or if there is no work.
  std::optional<double> FloorSeconds(const Work& work) const;
};

// `rows` are what the ceilings were taken from.
std::string ToJson(const Ceilings& ceilings, const std::vector<BenchRow>& rows);

// NOT_FOUND if there is no such file, INVALID_ARGUMENT naming the field if it has another form.
absl::StatusOr<Ceilings> ReadCeilings(const std::string& path);
absl::Status WriteCeilings(const std::string& path, const Ceilings& ceilings,
                           const std::vector<BenchRow>& rows);

}  // namespace wan
