// Errors with a type, which cross the engine's boundary as payloads of an absl::Status. The server
// turns these errors into google.rpc details. Only this code knows how a payload stores an error.
// All functions are thread-safe.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"

namespace wan {

// Describes one wrong field of a request.
struct FieldViolation {
  // The field's path in the request, for example "width" or "guidance_scale[1]".
  std::string field;
  // The offending value, what is wrong with it, and the nearest right value.
  std::string description;

  friend bool operator==(const FieldViolation&, const FieldViolation&) = default;
};

// InvalidFields keeps at most this many violations, so that responses stay small.
inline constexpr size_t kMaxViolations = 100;

// Returns an INVALID_ARGUMENT with the first kMaxViolations of `violations`, which must not be
// empty. If `violations` has more entries, a last violation without a field says how many.
absl::Status InvalidFields(const std::vector<FieldViolation>& violations);

// Returns the violations in a status that InvalidFields made; none for other statuses.
std::vector<FieldViolation> FieldViolationsOf(const absl::Status& status);

// Returns how many violations InvalidFields was given, including those it left out; 0 for other
// statuses.
size_t ViolationCountOf(const absl::Status& status);

// Returns `status`, which must not be OK, with a machine-readable reason attached
// (UPPER_SNAKE_CASE, for example "MODEL_NOT_READY").
absl::Status WithReason(absl::Status status, std::string_view reason);

// RESOURCE_EXHAUSTED: device or host memory ran out. The next job is not affected.
inline constexpr std::string_view kReasonOutOfMemory = "OUT_OF_MEMORY";
// UNAVAILABLE: the device no longer works for this process, and all later calls will fail. Only a
// new process, or a repair of the device, helps.
inline constexpr std::string_view kReasonDeviceLost = "DEVICE_LOST";

// DATA_LOSS: a computation gave NaN or infinity, so the result is useless. The cause is the
// weights, a LoRA or the input. The device works, and other jobs are not affected.
inline constexpr std::string_view kReasonNotFinite = "NOT_FINITE";

// Each ...Error function makes a status with one of the three reasons above; each Is... function
// recognises that status.
absl::Status OutOfMemoryError(std::string_view message);
bool IsOutOfMemory(const absl::Status& status);
absl::Status DeviceLostError(std::string_view message);
bool IsDeviceLost(const absl::Status& status);
absl::Status NotFiniteError(std::string_view message);
bool IsNotFinite(const absl::Status& status);

// Returns the reason that WithReason attached, or an empty string.
std::string ReasonOf(const absl::Status& status);

}  // namespace wan
