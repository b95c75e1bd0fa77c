// The highest rates measured on a card (the file of `wan_bench ceilings --output FILE`), and the
// least time of planned work at these rates.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "wan/v1/telemetry.pb.h"

namespace wan::client::reports {

struct Ceilings {
  // "NVIDIA H200", or the processor's name.
  std::string device;
  // UTC, RFC 3339.
  std::string measured_at;
  // Floating-point operations a second by precision: "bf16", "fp16", "tf32", "fp32".
  std::map<std::string, double> products;
  std::map<std::string, double> attention;
  // Bytes a second of the device's memory, reading and writing counted; 0 if not measured.
  double memory = 0;
};

// INVALID_ARGUMENT if a field is wrong. Messages call the text `name`.
absl::StatusOr<Ceilings> ParseCeilings(std::string_view json, const std::string& name);

// NOT_FOUND if the file cannot be read, otherwise as ParseCeilings.
absl::StatusOr<Ceilings> ReadCeilings(const std::string& path);

// Returns the name of the GPU that the job ran on, or of the processor; empty if unknown.
const std::string& DeviceNameOf(const wan::v1::JobReport& report);

// Whether the ceilings were measured on the report's device.
bool AreOf(const Ceilings& ceilings, const wan::v1::JobReport& report);

// Returns the ceilings of the report's device; null if there are none.
const Ceilings* FindCeilings(const std::vector<Ceilings>& ceilings,
                             const wan::v1::JobReport& report);

// Returns the least seconds of one class of operators: its FLOPs at the rate of products or
// attention, or its bytes at the memory's, whichever takes longer. Absent if a rate is not known or
// nothing is counted.
std::optional<double> FloorSeconds(const Ceilings& ceilings,
                                   const wan::v1::OperatorClass& operators,
                                   const std::string& precision);

// Returns the least seconds of a forward with these FLOPs, whose blocks are `plan`'s.
std::optional<double> ForwardFloor(const Ceilings& ceilings, const wan::v1::PlanReport& plan,
                                   const std::string& precision, double flops);

// Returns the least seconds of a stage of products alone, such as decoding.
std::optional<double> ProductFloor(const Ceilings& ceilings, const std::string& precision,
                                   double flops);

// Returns the precision in which the autoencoder computed, such as "fp16"; empty if unknown.
std::string VaePrecision(const wan::v1::JobReport& report);

}  // namespace wan::client::reports
