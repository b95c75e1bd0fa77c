// generation_defaults.json of a checkpoint's folder, in either layout: neither layout as published
// has a place for it. Its members are those of a request (docs/checkpoints.md).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "engine/checkpoint/model_config.h"

namespace wan {

// Nothing, and no problem, if there is no such file. Otherwise appends what is wrong with its form
// (unknown members, types) and gives nothing then; whether the values make a request that the model
// accepts is for planning to say.
std::optional<GenerationDefaults> ReadGenerationDefaults(const std::string& path,
                                                         std::vector<absl::Status>& problems);

}  // namespace wan
