// Writes a job's output files.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/api/engine.h"
#include "engine/api/generation.h"
#include "engine/media/video_writer.h"

namespace wan {

// The files of one job. If the first file fails, the job fails. The other files are optional: if
// one fails, the observer is told once and the job goes on. Not thread-safe.
class VideoFiles {
 public:
  // All arguments must outlive this object. `observer` is called on the writing thread, one call at
  // a time.
  VideoFiles(const GenerationPlan& plan, std::span<const OutputFile> outputs,
             GenerationObserver& observer)
      : plan_(plan), outputs_(outputs), observer_(observer) {}

  // Writes every output for latents. The latents must be finite.
  absl::Status WriteLatents(const at::Tensor& latents);

  // Opens a writer for every output with frames, except optional ones that have failed. A second
  // call overwrites the files of the first. The writers must not outlive this object; one thread at
  // a time may use them.
  absl::StatusOr<std::vector<std::unique_ptr<VideoWriter>>> OpenWriters(
      const std::string& h264_preset);

 private:
  bool IsOptional(const OutputFile& output) const { return &output != outputs_.data(); }
  // Returns OK if the output is optional (and reports its loss), otherwise `status`.
  absl::Status GoOnWithout(const OutputFile& output, const absl::Status& status);

  const GenerationPlan& plan_;
  const std::span<const OutputFile> outputs_;
  GenerationObserver& observer_;
  std::set<const OutputFile*> lost_;
};

}  // namespace wan
