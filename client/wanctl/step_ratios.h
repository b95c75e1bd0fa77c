// Makes the file of ratios that quality fast needs from the report of a job that calibrated.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "wan/v1/telemetry.pb.h"

namespace wan::client {

// Returns the text of step_ratios.json (docs/operate/checkpoints.md) for a model of this family.
// FAILED_PRECONDITION, with a message that follows the job's name, if a step has no ratio. Pure.
absl::StatusOr<std::string> StepRatiosFile(const wan::v1::JobReport& report,
                                           std::string_view family);

}  // namespace wan::client
