// Parses the names of devices: "cpu" and "cuda:N".
#pragma once

#include <optional>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace wan {

// Returns N for "cuda:N", and nullopt for "cpu". INVALID_ARGUMENT for any other text. Thread-safe.
absl::StatusOr<std::optional<int>> ParseDeviceName(std::string_view name);

// Returns UNAVAILABLE, naming the GPUs that exist, if `gpu` is not below `count`, the number of
// GPUs that the driver reports. Thread-safe.
absl::Status CheckGpuExists(int gpu, int count);

}  // namespace wan
