// The steps of one job, to their end: begun at the noise or where an earlier attempt got to, and
// taken up again where memory ended.
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

namespace wan {

// What the steps need besides their inputs.
struct DenoiseRun {
  ExpertSwitch& experts;
  Recorder& recorder;
  const WorkGate& gate;
  GenerationObserver& observer;
  SavepointKeeper* savepoints = nullptr;  // null: none are kept
  std::function<absl::Status(const DenoiseState&)> on_step;
};

// Runs the steps behind `start` and returns the latents. Statuses as DenoiseLoop's.
//
// After each step the keeper is asked whether it wants a savepoint; after a stop request the steps
// that are done are handed to it if it wants them. Where memory ends after at least one step, the
// memory that nobody uses is given back and the step begins again, once: the steps before it are
// done, and the same bits come out (another process may have taken the memory for a while).
absl::StatusOr<at::Tensor> RunDenoising(const DenoiseInputs& inputs, const DenoiseProgress& start,
                                        const DenoiseRun& run);

}  // namespace wan
