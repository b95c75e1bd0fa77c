// The least time that planned work can take at the rates that its device was measured to give.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "client/reports/ceilings_file.h"
#include "wan/v1/telemetry.pb.h"

namespace wan::client::reports {

// The GPU that the job ran on, or the processor of a job without one; empty if it is not known.
const std::string& DeviceNameOf(const wan::v1::JobReport& report);

// Whether they were measured on the device of the report.
bool AreOf(const Ceilings& ceilings, const wan::v1::JobReport& report);

// Those of the report's device; null if none of them are.
const Ceilings* FindCeilings(const std::vector<Ceilings>& ceilings,
                             const wan::v1::JobReport& report);

// The least seconds of one class of operators: its FLOPs at the rate of products or attention, or
// its bytes at that of the memory, whichever takes longer. Absent if a rate is not known or nothing
// is counted.
std::optional<double> FloorSeconds(const Ceilings& ceilings,
                                   const wan::v1::OperatorClass& operators,
                                   const std::string& precision);

// The least seconds of a forward with so many FLOPs, whose blocks are `plan`'s.
std::optional<double> ForwardFloor(const Ceilings& ceilings, const wan::v1::PlanReport& plan,
                                   const std::string& precision, double flops);

// The least seconds of a stage of products alone: a decoding.
std::optional<double> ProductFloor(const Ceilings& ceilings, const std::string& precision,
                                   double flops);

// The precision in which the autoencoder computed: "fp16"; empty if it is not known.
std::string VaePrecision(const wan::v1::JobReport& report);

}  // namespace wan::client::reports
