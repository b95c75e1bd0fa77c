// The state of a job between two denoising steps, in memory and as bytes.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/api/generation.h"
#include "engine/api/savepoint.h"

namespace wan {

// The state between two steps. Its tensors are never changed, so that objects may share them.
struct DenoiseProgress {
  int steps_done = 0;
  at::Tensor latents;               // fp32 [C, T, H, W]
  std::vector<at::Tensor> history;  // FlowSolverState::history

  // Returns a copy with the tensors on `device`.
  DenoiseProgress To(const c10::Device& device) const;
};

// Writes the progress as a savepoint: one line of JSON that describes it, then the tensors' bytes.
// Waits until they are copied from the device (77 MB with UniPC at 1280x720x81). Leaves the
// history out if no step of `plan` will read it.
Savepoint ToSavepoint(const DenoiseProgress& progress, const GenerationPlan& plan);

// Reads a savepoint into host memory. DATA_LOSS, which says what does not fit, if the savepoint
// belongs to a job with another latent shape or other steps than `plan`, if its bytes do not match
// its first line, or if a value is infinite or no number.
absl::StatusOr<DenoiseProgress> FromSavepoint(const Savepoint& savepoint,
                                              const GenerationPlan& plan);

}  // namespace wan
