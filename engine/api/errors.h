// Typed errors that cross the engine's boundary as absl::Status payloads. The server turns them
// into google.rpc details; nothing else needs to know how they are carried.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"

namespace wan {

// One wrong field of a request.
struct FieldViolation {
  // Path in the request's terms, for example "width" or "guidance_scale[1]".
  std::string field;
  // What is wrong and what would be right, with the offending value.
  std::string description;

  friend bool operator==(const FieldViolation&, const FieldViolation&) = default;
};

// INVALID_ARGUMENT that carries every violation; `violations` must not be empty.
absl::Status InvalidFields(const std::vector<FieldViolation>& violations);

// The violations of a status made by InvalidFields; empty for any other status.
std::vector<FieldViolation> FieldViolationsOf(const absl::Status& status);

// Attaches a machine-readable reason (UPPER_SNAKE_CASE, for example "MODEL_NOT_READY").
absl::Status WithReason(absl::Status status, std::string_view reason);

// The reason of a status; empty if it has none.
std::string ReasonOf(const absl::Status& status);

}  // namespace wan
