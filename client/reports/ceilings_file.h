// The file of `wan_bench ceilings --output FILE`: the measured rates of one device.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace wan::client::reports {

struct Ceilings {
  std::string device;       // "NVIDIA H200", or the processor's name
  std::string software;     // versions of the libraries that were measured
  std::string measured_at;  // UTC, RFC 3339
  double seconds_each = 0;  // how long each rate was measured
  // Floating-point operations per second, by precision: "bf16", "fp16", "tf32", "fp32".
  std::map<std::string, double> products;
  std::map<std::string, double> attention;
  // Bytes per second; 0 if not measured. `memory` counts reads and writes of device memory.
  double memory = 0;
  double upload = 0;    // from locked host memory
  double download = 0;  // to locked host memory
};

// Returns the rate of a precision; 0 if it was not measured.
double RateOf(const std::map<std::string, double>& rates, const std::string& precision);

// Returns the text of the file. `rows` are the measurements behind the rates, each a JSON object.
std::string ToJson(const Ceilings& ceilings, const std::vector<std::string>& rows);

// Parses the text of the file. INVALID_ARGUMENT, naming the field, if it has another form. `name`
// stands for the text in messages.
absl::StatusOr<Ceilings> ParseCeilings(std::string_view json, const std::string& name);

// Reads and parses the file. NOT_FOUND if it cannot be read; errors of ParseCeilings.
absl::StatusOr<Ceilings> ReadCeilings(const std::string& path);

}  // namespace wan::client::reports
