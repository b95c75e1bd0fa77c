// Computes the least time that planned work takes at the measured rates of its device.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "client/reports/ceilings_file.h"
#include "wan/v1/telemetry.pb.h"

namespace wan::client::reports {

// Returns the name of the GPU that the job ran on, or of the processor; empty if unknown.
const std::string& DeviceNameOf(const wan::v1::JobReport& report);

// Whether the ceilings were measured on the device of the report.
bool AreOf(const Ceilings& ceilings, const wan::v1::JobReport& report);

// Returns the ceilings of the device of the report; null if there are none.
const Ceilings* FindCeilings(const std::vector<Ceilings>& ceilings,
                             const wan::v1::JobReport& report);

// Returns the least seconds that one class of operators takes: the larger of the times for its
// FLOPs, at the rate of products or attention, and for its bytes, at the memory's rate. Absent if a
// rate is unknown or the plan counts nothing for the class.
std::optional<double> FloorSeconds(const Ceilings& ceilings,
                                   const wan::v1::OperatorClass& operators,
                                   const std::string& precision);

// Returns the least seconds that a forward pass takes that has these FLOPs and the blocks of
// `plan`.
std::optional<double> ForwardFloor(const Ceilings& ceilings, const wan::v1::PlanReport& plan,
                                   const std::string& precision, double flops);

// Returns the least seconds that a stage takes that consists of products, such as decoding.
std::optional<double> ProductFloor(const Ceilings& ceilings, const std::string& precision,
                                   double flops);

// Returns the precision in which the autoencoder has computed, such as "fp16"; empty if unknown.
std::string VaePrecision(const wan::v1::JobReport& report);

}  // namespace wan::client::reports
