// Reads generation_defaults.json from a checkpoint's folder. This project defines
// generation_defaults.json; a checkpoint of either layout may have the file. The file has the
// fields of a request (docs/operate/checkpoints.md).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "engine/checkpoint/model_config.h"

namespace wan {

// If there is no such file, returns nullopt without a problem. If the file has unknown fields or
// wrong types, appends every problem and returns nullopt. Planning checks whether the model accepts
// the values. Thread-safe.
std::optional<GenerationDefaults> ReadGenerationDefaults(const std::string& path,
                                                         std::vector<absl::Status>& problems);

}  // namespace wan
