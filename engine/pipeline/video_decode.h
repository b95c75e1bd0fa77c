// Decodes the latents of one job into its video files.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>

#include "absl/status/status.h"
#include "engine/api/generation.h"
#include "engine/api/recorder.h"
#include "engine/device/work_gate.h"
#include "engine/pipeline/pipeline_model.h"
#include "engine/pipeline/video_files.h"

namespace wan {

// Objects that decoding uses in addition to the latents; all must outlive the call.
struct VideoDecode {
  const GenerationPlan& plan;
  const PipelineModel& model;
  Recorder& recorder;
  const WorkGate& gate;
  VideoFiles& files;
  // Receives each decoded chunk [3, n, H, W] in [-1, 1]; may be empty.
  const std::function<void(const at::Tensor&)>& on_frames;
};

// Decodes the latents and writes every output that consists of frames, in the spans VAE_Decoding
// and Video_Encoding. If memory runs out, decodes the same latents again in smaller tiles, from the
// first frame on, so that the work of the finished steps is not lost. DATA_LOSS (IsNotFinite) if
// frames are not finite; otherwise errors of VideoAutoencoder::Decode and of the writers.
absl::Status DecodeVideo(const at::Tensor& latents, const VideoDecode& decode);

}  // namespace wan
