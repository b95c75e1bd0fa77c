// The schedule of a few-step (distilled) checkpoint. Neither layout as published has one; where it
// lives is written in docs/checkpoints.md.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "engine/checkpoint/model_config.h"

namespace wan {

// Upstream's layout: few_step.json beside the components, in LightX2V's terms
// ("denoising_step_list", "sample_shift", ...). Nothing, and no problem, if there is no such file.
// Otherwise appends what is wrong and gives nothing then.
std::optional<FewStepConfig> ReadOriginalFewStep(const std::string& path,
                                                 std::vector<absl::Status>& problems);

// diffusers' layout: scheduler/scheduler_config.json, of a FlowMatchEulerDiscreteScheduler, if it
// has a "denoising_step_list". Otherwise as above.
std::optional<FewStepConfig> ReadDiffusersFewStep(const std::string& path,
                                                  std::vector<absl::Status>& problems);

}  // namespace wan
