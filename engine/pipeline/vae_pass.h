// Makes the pipeline's passes through the autoencoder for a job.
#pragma once

#include "engine/api/generation.h"
#include "engine/api/recorder.h"
#include "engine/device/work_gate.h"
#include "engine/models/video_autoencoder.h"

namespace wan {

// Returns a pass in the precision of a plan's request. Records the sample "vae_fallback" with the
// labels "from" and "to" where a value leaves the precision's range and another one takes over.
// `recorder` must outlive the pass; null: nothing is recorded.
VaePass MakeVaePass(const WorkGate& gate, const GenerationRequest& request, Recorder* recorder);

}  // namespace wan
