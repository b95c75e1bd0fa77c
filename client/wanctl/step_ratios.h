// Makes the file of ratios that quality fast needs from the report of a job that calibrated.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "wan/v1/telemetry.pb.h"

namespace wan::client {

// Returns the text of step_ratios.json (docs/operate/checkpoints.md) for a model of this family.
// Returns FAILED_PRECONDITION if a step has no ratio; the message continues a sentence that begins
// with the job's name. A pure function.
absl::StatusOr<std::string> StepRatiosFile(const wan::v1::JobReport& report,
                                           std::string_view family);

}  // namespace wan::client
