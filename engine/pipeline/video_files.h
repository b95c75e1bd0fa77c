// From latents to the files that a job asked for.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/api/engine.h"
#include "engine/api/generation.h"
#include "engine/api/recorder.h"
#include "engine/device/work_gate.h"
#include "engine/media/video_writer.h"
#include "engine/pipeline/pipeline_model.h"

namespace wan {

// The files of one job. The first one is what the job is for: its errors end the job. The others
// are optional: one that fails is told to the observer, once, and the rest goes on without it.
class VideoFiles {
 public:
  // All must outlive the object. `observer` is called by the thread that writes, one call at a
  // time.
  VideoFiles(const GenerationPlan& plan, std::span<const OutputFile> outputs,
             GenerationObserver& observer)
      : plan_(plan), outputs_(outputs), observer_(observer) {}

  // Writes the latents wherever they are asked for.
  absl::Status WriteLatents(const at::Tensor& latents);

  // Decodes the latents and writes every file of frames (spans VAE_Decoding and Video_Encoding).
  // Where memory ends the same latents are decoded again from the first frame on, in smaller tiles:
  // the steps are done and must not be lost. `on_frames` sees each chunk [3, n, H, W] in [-1, 1] on
  // its way and may be empty.
  absl::Status WriteFrames(const at::Tensor& latents, const PipelineModel& model,
                           Recorder& recorder, const WorkGate& gate,
                           const std::function<void(const at::Tensor&)>& on_frames);

 private:
  bool IsOptional(const OutputFile& output) const { return &output != outputs_.data(); }
  // OK if the job does without the output, else the status.
  absl::Status GoOnWithout(const OutputFile& output, const absl::Status& status);
  absl::StatusOr<std::vector<std::unique_ptr<VideoWriter>>> OpenWriters();
  absl::Status WriteFramesOnce(const at::Tensor& latents, const TileGrid& tiles,
                               const PipelineModel& model, Recorder& recorder, const WorkGate& gate,
                               const std::function<void(const at::Tensor&)>& on_frames);

  const GenerationPlan& plan_;
  const std::span<const OutputFile> outputs_;
  GenerationObserver& observer_;
  std::set<const OutputFile*> lost_;
};

}  // namespace wan
