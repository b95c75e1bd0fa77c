// Reads step_ratios.json from a checkpoint's folder. The file is our own, and both layouts may have
// it. `wanctl calibrate` writes it (docs/operate/checkpoints.md).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "engine/families/model_family.h"

namespace wan {

// The file's name in the checkpoint's folder.
inline constexpr char kStepRatiosFile[] = "step_ratios.json";

// The version of the file format that ReadStepRatios accepts.
inline constexpr int kStepRatiosVersion = 1;

// Returns nullopt without a problem if there is no such file. If the file is for another family or
// has another version, if it has unknown fields, or if it contradicts itself, appends every problem
// and returns nullopt. Thread-safe.
std::optional<StepRatios> ReadStepRatios(const std::string& path, const ModelFamily& family,
                                         std::vector<absl::Status>& problems);

}  // namespace wan
