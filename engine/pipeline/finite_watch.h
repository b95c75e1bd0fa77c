// Detects NaN and infinity in a job's values, and names possible causes.
//
// Such values spread: one weight that is not finite spoils all latents within a step, and the video
// is black. No library reports that as an error.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "engine/api/generation.h"
#include "engine/api/stage.h"
#include "engine/device/finite_check.h"

namespace wan {

// Returns the error (IsNotFinite) for `what`, a plural such as "the latents", computed in `stage`.
// It names the stage, the step with its expert, the LoRAs in use with their scales, and what to
// try.
absl::Status NotFiniteIn(const GenerationPlan& plan, const Stage& stage, const std::string& what);

// Serves one job. A check costs the device one sum and the host no wait; Verdict() is called where
// the host has waited for the device anyway. Not thread-safe. Throws what LibTorch throws.
class FiniteWatch {
 public:
  // `plan` must outlive the object.
  explicit FiniteWatch(const GenerationPlan& plan) : plan_(plan) {}

  // Queues a check of `values`, which `stage` has computed or queued on the current stream. `what`
  // names them as in NotFiniteIn.
  void Look(const Stage& stage, std::string what, const at::Tensor& values);

  // Returns OK if all values checked since the last call are finite, otherwise the error of the
  // first check that failed. Waits until the device has done the checks.
  absl::Status Verdict();

 private:
  struct Pending {
    Stage stage;
    std::string what;
    std::unique_ptr<FiniteCheck> check;
  };

  const GenerationPlan& plan_;
  std::vector<Pending> pending_;
  std::vector<std::unique_ptr<FiniteCheck>> idle_;  // for reuse; each has pinned memory
};

}  // namespace wan
