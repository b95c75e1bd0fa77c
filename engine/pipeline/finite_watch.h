// Finds NaN and infinity among a job's values, and names their possible causes.
//
// Values that are not finite spread: one such weight makes all latents so within a step, and the
// video black. Nothing else would report that, because no library counts it as an error.
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

// Returns the error (IsNotFinite) of a job in whose stage `what`, a plural such as "the latents",
// is not finite. It names the stage, the step with its expert, the LoRAs that may be at fault with
// their scales, and what to try.
absl::Status NotFiniteIn(const GenerationPlan& plan, const Stage& stage, const std::string& what);

// Serves one job. A look costs the device one sum and the host no wait; the verdict is read where
// the device has been waited for anyway. Not thread-safe. Throws what LibTorch throws.
class FiniteWatch {
 public:
  // `plan` must outlive the object.
  explicit FiniteWatch(const GenerationPlan& plan) : plan_(plan) {}

  // Queues a check of `values`, which `stage` has computed or queued on the current stream. `what`
  // names them as NotFiniteIn takes it.
  void Look(const Stage& stage, std::string what, const at::Tensor& values);

  // Returns OK if everything that was looked at since the last call is finite, otherwise the error
  // of the first look whose values are not. Waits until the device has done the looks.
  absl::Status Verdict();

 private:
  struct Pending {
    Stage stage;
    std::string what;
    std::unique_ptr<FiniteCheck> check;
  };

  const GenerationPlan& plan_;
  std::vector<Pending> pending_;
  std::vector<std::unique_ptr<FiniteCheck>> idle_;  // to be used again: each has a locked page
};

}  // namespace wan
