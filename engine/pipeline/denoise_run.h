// Runs the denoising steps of one job to their end. A run starts from the noise or from an earlier
// attempt's savepoint, and repeats a step in which memory ran out.
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

// Objects that the steps use in addition to their inputs; all must outlive the run.
struct DenoiseRun {
  ExpertSwitch& experts;
  Recorder& recorder;
  const WorkGate& gate;
  FiniteWatch& finite;
  GenerationObserver& observer;
  SavepointKeeper* savepoints = nullptr;  // null: no savepoints are made
  std::function<absl::Status(const DenoiseState&)> on_step;
};

// Runs the remaining steps after `start` and returns the latents, which are finite. Returns the
// errors of DenoiseLoop.
//
// After each step whose latents are finite, asks the keeper of savepoints whether a savepoint is
// due. After a stop request, offers the keeper a savepoint of the finished steps. If memory runs
// out in a step, frees unused memory and repeats the step with the same bits. The cause may be
// another process that held the memory for a while. Gives up if no step has succeeded since the
// start or since the last repetition.
absl::StatusOr<at::Tensor> RunDenoising(const DenoiseInputs& inputs, const DenoiseProgress& start,
                                        const DenoiseRun& run);

}  // namespace wan
