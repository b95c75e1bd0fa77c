// Reads generation_defaults.json from a checkpoint's folder. The file is our own, and both layouts
// may have it. It has the fields of a request (docs/operate/checkpoints.md).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "engine/checkpoint/model_config.h"

namespace wan {

// Returns nullopt without a problem if there is no such file. If it has unknown fields or wrong
// types, appends every problem and returns nullopt. Whether the model accepts the values is checked
// in planning. Thread-safe.
std::optional<GenerationDefaults> ReadGenerationDefaults(const std::string& path,
                                                         std::vector<absl::Status>& problems);

}  // namespace wan
