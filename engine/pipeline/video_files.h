// Writes the files that a job asked for.
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

// The files of one job. An error of the first one ends the job, because the job was made for it.
// The others are optional: if one fails, the observer is told once, and the job goes on without it.
// Not thread-safe.
class VideoFiles {
 public:
  // All arguments must outlive this object. `observer` is called on the thread that writes, one
  // call at a time.
  VideoFiles(const GenerationPlan& plan, std::span<const OutputFile> outputs,
             GenerationObserver& observer)
      : plan_(plan), outputs_(outputs), observer_(observer) {}

  // Writes every output that is a file of latents. They must be finite.
  absl::Status WriteLatents(const at::Tensor& latents);

  // Decodes the latents and writes every output with frames, in the spans VAE_Decoding and
  // Video_Encoding. If memory runs out, decodes the same latents again from the first frame in
  // smaller tiles, so that the finished steps are not lost. `on_frames` receives each chunk
  // [3, n, H, W] in [-1, 1]; it may be empty. DATA_LOSS (IsNotFinite) if frames are not finite.
  absl::Status WriteFrames(const at::Tensor& latents, const PipelineModel& model,
                           Recorder& recorder, const WorkGate& gate,
                           const std::function<void(const at::Tensor&)>& on_frames);

 private:
  bool IsOptional(const OutputFile& output) const { return &output != outputs_.data(); }
  // Returns OK if the job may go on without the output, else `status`.
  absl::Status GoOnWithout(const OutputFile& output, const absl::Status& status);
  absl::StatusOr<std::vector<std::unique_ptr<VideoWriter>>> OpenWriters(const H264Options& h264);
  absl::Status WriteFramesOnce(const at::Tensor& latents, const TileGrid& tiles,
                               const PipelineModel& model, Recorder& recorder, const WorkGate& gate,
                               const std::function<void(const at::Tensor&)>& on_frames);

  const GenerationPlan& plan_;
  const std::span<const OutputFile> outputs_;
  GenerationObserver& observer_;
  std::set<const OutputFile*> lost_;
};

}  // namespace wan
