// Sends previews of a video while its steps run.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "engine/api/engine.h"
#include "engine/api/generation.h"
#include "engine/device/work_gate.h"
#include "engine/pipeline/denoise_loop.h"
#include "engine/pipeline/frame_download.h"
#include "engine/pipeline/pipeline_model.h"

namespace wan {

// Sends the previews of one job. Previews are optional: if a preview fails, for example because
// memory runs out, the sender tells the observer and makes no more previews. A preview that is not
// finite ends the job, because the model's weights are the cause.
class PreviewSender {
 public:
  // All arguments must outlive the object.
  PreviewSender(const GenerationPlan& plan, const PipelineModel& model,
                GenerationObserver& observer, const WorkGate& gate)
      : plan_(plan),
        model_(model),
        observer_(observer),
        gate_(gate),
        download_(model.device, /*most_frames=*/1, [this](std::vector<uint8_t> rgb24) {
          picture_ = std::move(rgb24);
          return absl::OkStatus();
        }) {}

  // Sends a preview if one is due after this step. The preview shows the first, the middle and the
  // last frame of the clean latents that the step predicts. Each is decoded alone, as if the
  // video began with it, so that a preview needs the memory of one frame. Returns CANCELLED after a
  // stop request, UNAVAILABLE (DEVICE_LOST), DATA_LOSS (NOT_FINITE), or OK.
  absl::Status AfterStep(const DenoiseState& state);

 private:
  absl::Status Send(const DenoiseState& state);

  const GenerationPlan& plan_;
  const PipelineModel& model_;
  GenerationObserver& observer_;
  const WorkGate& gate_;
  FrameDownload download_;
  std::vector<uint8_t> picture_;  // the picture that was downloaded last, RGB24
  bool failed_ = false;
};

}  // namespace wan
