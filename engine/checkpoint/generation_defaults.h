// Reads generation_defaults.json from a checkpoint's folder, in either layout; the published
// layouts have no such file. Its members are those of a request (docs/operate/checkpoints.md).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "engine/checkpoint/model_config.h"

namespace wan {

// Returns nullopt without a problem if there is no such file. If its form is wrong (unknown
// members, wrong types), it appends every problem and returns nullopt. Planning checks whether the
// values make a request that the model accepts. Thread-safe.
std::optional<GenerationDefaults> ReadGenerationDefaults(const std::string& path,
                                                         std::vector<absl::Status>& problems);

}  // namespace wan
