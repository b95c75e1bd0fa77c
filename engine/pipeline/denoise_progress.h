// A job's state between two denoising steps, both in memory and as the bytes of a savepoint.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/api/generation.h"
#include "engine/api/savepoint.h"

namespace wan {

// A job's state between two steps. Nobody changes its tensors, so copies may share them.
struct DenoiseProgress {
  int steps_done = 0;
  at::Tensor latents;               // fp32, shape [C, T, H, W]
  std::vector<at::Tensor> history;  // has the meaning of FlowSolverState::history

  // Returns a copy whose tensors are on `device`.
  DenoiseProgress To(const c10::Device& device) const;
};

// Returns whether a run can begin after this many steps of the plan. A step that reuses blocks
// cannot be the first step of a run, because it needs the blocks' sum that the previous step kept.
bool CanBeginAt(const GenerationPlan& plan, int steps_done);

// Returns the progress as a savepoint: a line of JSON, then the tensors' bytes. Waits until the
// tensors are copied from the device (77 MB with UniPC at 1280x720x81). Leaves the history out if
// the remaining steps of `plan` do not read it.
Savepoint ToSavepoint(const DenoiseProgress& progress, const GenerationPlan& plan);

// Returns the progress that a savepoint holds, with tensors in host memory. DATA_LOSS, with the
// reason, if the latents' shape or the steps do not match `plan`, if the bytes do not match the
// first line, or if a value is not finite.
absl::StatusOr<DenoiseProgress> FromSavepoint(const Savepoint& savepoint,
                                              const GenerationPlan& plan);

}  // namespace wan
