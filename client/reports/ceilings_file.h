// Reads and writes the file of `wan_bench ceilings --output FILE`, which has the measured rates of
// one device.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace wan::client::reports {

struct Ceilings {
  std::string device;       // for example "NVIDIA H200", or the name of the processor
  std::string software;     // versions of the libraries that were measured
  std::string measured_at;  // time of the measurement, UTC in the form of RFC 3339
  double seconds_each = 0;  // seconds for which each rate was measured
  // Floating-point operations per second of matrix products and of attention; the key is the
  // precision: "bf16", "fp16", "tf32", "fp32".
  std::map<std::string, double> products;
  std::map<std::string, double> attention;
  // Bytes per second; 0 if the rate was not measured. The member `memory` counts reads and writes
  // of device memory.
  double memory = 0;
  double upload = 0;    // copying from locked host memory to the device
  double download = 0;  // copying from the device to locked host memory
};

// Returns the rate for a precision; 0 if it was not measured.
double RateOf(const std::map<std::string, double>& rates, const std::string& precision);

// Returns the text of the file of ceilings. `rows` are the measurements behind the rates, each as a
// JSON object.
std::string ToJson(const Ceilings& ceilings, const std::vector<std::string>& rows);

// Parses the text of the file of ceilings. Fails with INVALID_ARGUMENT, naming the field, if the
// text has another form. Messages call the text `name`.
absl::StatusOr<Ceilings> ParseCeilings(std::string_view json, const std::string& name);

// Returns the content of a file; nothing if it cannot be read; errno has the cause.
std::optional<std::string> ReadFile(const std::string& path);

// Reads and parses the file. Fails with NOT_FOUND if the file cannot be read, otherwise with the
// errors of ParseCeilings.
absl::StatusOr<Ceilings> ReadCeilings(const std::string& path);

}  // namespace wan::client::reports
