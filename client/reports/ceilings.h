// Computes the least time of planned work at the measured rates of its device.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "client/reports/ceilings_file.h"
#include "wan/v1/telemetry.pb.h"

namespace wan::client::reports {

// Returns the name of the GPU that the job ran on, or of the processor; empty if unknown.
const std::string& DeviceNameOf(const wan::v1::JobReport& report);

// Whether the ceilings were measured on the report's device.
bool AreOf(const Ceilings& ceilings, const wan::v1::JobReport& report);

// Returns the ceilings of the report's device; null if there are none.
const Ceilings* FindCeilings(const std::vector<Ceilings>& ceilings,
                             const wan::v1::JobReport& report);

// Returns the least seconds of one class of operators: the larger of its FLOPs at the rate of
// products or attention, and its bytes at the memory's rate. Absent if a rate is unknown or nothing
// was counted.
std::optional<double> FloorSeconds(const Ceilings& ceilings,
                                   const wan::v1::OperatorClass& operators,
                                   const std::string& precision);

// Returns the least seconds of a forward pass with these FLOPs and the blocks of `plan`.
std::optional<double> ForwardFloor(const Ceilings& ceilings, const wan::v1::PlanReport& plan,
                                   const std::string& precision, double flops);

// Returns the least seconds of a stage that consists of products, such as decoding.
std::optional<double> ProductFloor(const Ceilings& ceilings, const std::string& precision,
                                   double flops);

// Returns the precision in which the autoencoder computed, such as "fp16"; empty if unknown.
std::string VaePrecision(const wan::v1::JobReport& report);

}  // namespace wan::client::reports
