// Detects NaN and infinity in a job's values, and names possible causes.
//
// NaN and infinity spread: a single weight that is not finite spoils all latents within a step, and
// the video becomes black. No library reports these values as an error, so the pipeline checks for
// them.
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
// The message names the stage, the step with its expert, and the LoRAs in use with their scales,
// and says what to try.
absl::Status NotFiniteIn(const GenerationPlan& plan, const Stage& stage, const std::string& what);

// An object serves one job. A check costs the device one sum, and the host does not wait for it.
// Call Verdict() where the host has waited for the device anyway. Not thread-safe. Exceptions of
// LibTorch pass through.
class FiniteWatch {
 public:
  // `plan` must outlive the object.
  explicit FiniteWatch(const GenerationPlan& plan) : plan_(plan) {}

  // Queues a check of `values`, which `stage` has computed or has queued on the current stream.
  // `what` names them as in NotFiniteIn.
  void Look(const Stage& stage, std::string what, const at::Tensor& values);

  // Returns OK if all values checked since the last call are finite. Otherwise returns the error of
  // the first check that failed. Waits until the device has finished the checks.
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
