// Reads the schedule of a few-step (distilled) checkpoint. The published layouts have no place for
// it; docs/operate/checkpoints.md says in which files it lies. All functions are thread-safe.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "engine/checkpoint/model_config.h"

namespace wan {

// Reads few_step.json of upstream's layout, which lies beside the components and has the members of
// LightX2V ("denoising_step_list", "sample_shift", ...). Returns nullopt without a problem if there
// is no such file; appends every problem of a wrong file and returns nullopt.
std::optional<FewStepConfig> ReadOriginalFewStep(const std::string& path,
                                                 std::vector<absl::Status>& problems);

// Reads scheduler/scheduler_config.json of the layout of diffusers. It must be that of a
// FlowMatchEulerDiscreteScheduler if it has a "denoising_step_list"; without that list it returns
// nullopt without a problem. Problems as above.
std::optional<FewStepConfig> ReadDiffusersFewStep(const std::string& path,
                                                  std::vector<absl::Status>& problems);

}  // namespace wan
