// Parses the text of a LoRA's schedule, which settings and wanctl share:
// "steps:4,shift:5,boundary_step:2", "sigmas:1/0.75/0.5/0.25,shift:5" or "none".
#pragma once

#include <string_view>

#include "absl/status/statusor.h"
#include "wan/v1/model_management.pb.h"

namespace wan {

// Steps that are not given are as many as there are sigmas; "none" has 0. The message of
// INVALID_ARGUMENT continues a sentence that begins with a name: "is 'x'; must be ...".
absl::StatusOr<wan::v1::LoraSchedule> ParseLoraSchedule(std::string_view text);

}  // namespace wan
