// How far the denoising of a job has come, in memory and as bytes.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/api/generation.h"
#include "engine/api/savepoint.h"

namespace wan {

// The state between two steps. Nobody changes its tensors, so they may be shared.
struct DenoiseProgress {
  int steps_done = 0;
  at::Tensor latents;               // fp32 [C, T, H, W]
  std::vector<at::Tensor> history;  // FlowSolverState::history

  DenoiseProgress To(const c10::Device& device) const;
};

// The progress as a savepoint: one line of JSON that describes it, then the tensors' bytes. Waits
// for their way from the device (60 MB at 1280x720x81: about 10 ms). The history is left out where
// no step of `plan` will read it.
Savepoint ToSavepoint(const DenoiseProgress& progress, const GenerationPlan& plan);

// The progress, in host memory. DATA_LOSS, which says what does not fit, if the savepoint is not
// one of a job with this plan's latent shape and steps, or has other bytes than its first line
// says.
absl::StatusOr<DenoiseProgress> FromSavepoint(const Savepoint& savepoint,
                                              const GenerationPlan& plan);

}  // namespace wan
