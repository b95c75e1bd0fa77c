// A job's state between two denoising steps, in memory and as bytes.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/api/generation.h"
#include "engine/api/savepoint.h"

namespace wan {

// A job's state between two steps. Its tensors are never changed, so copies may share them.
struct DenoiseProgress {
  int steps_done = 0;
  at::Tensor latents;               // fp32 [C, T, H, W]
  std::vector<at::Tensor> history;  // FlowSolverState::history

  // Returns a copy with the tensors on `device`.
  DenoiseProgress To(const c10::Device& device) const;
};

// Writes the progress as a savepoint: a line of JSON, then the tensors' bytes. Waits for their copy
// from the device (77 MB with UniPC at 1280x720x81). Omits the history if no later step of `plan`
// reads it.
Savepoint ToSavepoint(const DenoiseProgress& progress, const GenerationPlan& plan);

// Reads a savepoint into host memory. DATA_LOSS, with the reason, if latent shape or steps differ
// from those of `plan`, if the bytes do not match the first line, or if a value is not finite.
absl::StatusOr<DenoiseProgress> FromSavepoint(const Savepoint& savepoint,
                                              const GenerationPlan& plan);

}  // namespace wan
