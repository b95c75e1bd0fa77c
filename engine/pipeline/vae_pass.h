// Makes the options of a job's passes through the autoencoder.
#pragma once

#include "engine/api/generation.h"
#include "engine/api/recorder.h"
#include "engine/device/work_gate.h"
#include "engine/models/video_autoencoder.h"

namespace wan {

// Returns options with the precision and the decoder that the request asks for. Records the sample
// "vae_fallback", with labels "from" and "to", whenever a value exceeds the precision's range and
// another precision takes over. `recorder` must outlive the returned options; null: nothing is
// recorded.
VaePass MakeVaePass(const WorkGate& gate, const GenerationRequest& request, Recorder* recorder);

}  // namespace wan
