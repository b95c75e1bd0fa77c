// Runs the denoising steps of one job to their end. They start at the noise or at the savepoint of
// an earlier attempt, and a step in which memory runs out starts again.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/api/engine.h"
#include "engine/api/recorder.h"
#include "engine/api/savepoint.h"
#include "engine/device/work_gate.h"
#include "engine/pipeline/denoise_loop.h"
#include "engine/pipeline/denoise_progress.h"
#include "engine/pipeline/expert_switch.h"
#include "engine/pipeline/finite_watch.h"

namespace wan {

// Objects that the steps use besides their inputs; all must outlive the run.
struct DenoiseRun {
  ExpertSwitch& experts;
  Recorder& recorder;
  const WorkGate& gate;
  FiniteWatch& finite;
  GenerationObserver& observer;
  SavepointKeeper* savepoints = nullptr;  // null: none are kept
  std::function<absl::Status(const DenoiseState&)> on_step;
};

// Runs the steps after `start` and returns the latents, which are finite. Statuses are those of
// DenoiseLoop.
//
// After each step, unless its latents are not finite, it asks the keeper whether it wants a
// savepoint; after a stop request it offers the finished steps to the keeper. If memory runs out
// after at least one finished step, it frees unused memory and starts the step again, once, with
// the same bits: another process may have held the memory for a while.
absl::StatusOr<at::Tensor> RunDenoising(const DenoiseInputs& inputs, const DenoiseProgress& start,
                                        const DenoiseRun& run);

}  // namespace wan
