// Reads the schedule of a few-step (distilled) checkpoint. The published layouts have no place for
// this schedule; docs/operate/checkpoints.md names the files that may hold it. All functions are
// thread-safe.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "engine/checkpoint/model_config.h"

namespace wan {

// Reads few_step.json, which upstream's layout may have. The file lies in the checkpoint's folder
// and has the field names of LightX2V ("denoising_step_list", "sample_shift", ...). If the file is
// absent, returns nullopt without a problem. If the file is wrong, appends every problem and
// returns nullopt.
std::optional<FewStepConfig> ReadOriginalFewStep(const std::string& path,
                                                 std::vector<absl::Status>& problems);

// Reads scheduler/scheduler_config.json of diffusers' layout. If the file has no
// "denoising_step_list", returns nullopt without a problem. If the file has "denoising_step_list",
// the scheduler must be FlowMatchEulerDiscreteScheduler. Reports problems as ReadOriginalFewStep
// does.
std::optional<FewStepConfig> ReadDiffusersFewStep(const std::string& path,
                                                  std::vector<absl::Status>& problems);

}  // namespace wan
