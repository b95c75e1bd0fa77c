// Recognises distilled checkpoints from their files. All functions are thread-safe.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "engine/checkpoint/checkpoint_parts.h"
#include "engine/checkpoint/model_config.h"

namespace wan {

// The pipeline class in model_index.json by which FastWan's checkpoints are recognised; ordinary
// checkpoints have WanPipeline.
inline constexpr std::string_view kFastWanPipeline = "WanDMDPipeline";

// Returns whether `name`, of a weight file that neither layout has, is the name of a distilled
// transformer that RecogniseDistillation knows.
bool IsDistilledFileName(std::string_view name);

// Returns the schedule of a recognised distilled checkpoint; nullopt for an ordinary checkpoint or
// an unknown family. Appends a problem if only one of two experts is distilled.
// FewStepConfig::recognised names the feature by which the checkpoint was recognised.
//
//   FastWan   by the class of its pipeline
//   LightX2V  by the names of the transformers' files, or of the files that these are links to
//   rCM       by the two dimensions of the patch embedding's weight, which is a linear layer's
std::optional<FewStepConfig> RecogniseDistillation(const CheckpointParts& parts,
                                                   std::vector<absl::Status>& problems);

}  // namespace wan
