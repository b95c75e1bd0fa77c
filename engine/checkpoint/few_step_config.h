// Reads the schedule of a few-step (distilled) checkpoint. The published layouts have no place for
// it; docs/operate/checkpoints.md names the files that may hold it. All functions are thread-safe.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "engine/checkpoint/model_config.h"

namespace wan {

// Reads few_step.json in upstream's layout. It lies beside the components and has LightX2V's field
// names ("denoising_step_list", "sample_shift", ...). Returns nullopt without a problem if the file
// is absent; if it is wrong, appends every problem and returns nullopt.
std::optional<FewStepConfig> ReadOriginalFewStep(const std::string& path,
                                                 std::vector<absl::Status>& problems);

// Reads scheduler/scheduler_config.json in diffusers' layout. Returns nullopt without a problem if
// it has no "denoising_step_list"; with one, the scheduler must be FlowMatchEulerDiscreteScheduler.
// Reports problems as ReadOriginalFewStep does.
std::optional<FewStepConfig> ReadDiffusersFewStep(const std::string& path,
                                                  std::vector<absl::Status>& problems);

}  // namespace wan
