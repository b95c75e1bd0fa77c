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

// The output files of one job. If the first file cannot be written, the job fails. The other files
// are optional: if a file cannot be written, the object tells the observer once, and the job goes
// on. Not thread-safe.
class VideoFiles {
 public:
  // All arguments must outlive this object. `observer` is called on the thread that writes, never
  // by two threads at a time.
  VideoFiles(const GenerationPlan& plan, std::span<const OutputFile> outputs,
             GenerationObserver& observer)
      : plan_(plan), outputs_(outputs), observer_(observer) {}

  // Writes every output that consists of latents. The latents must be finite.
  absl::Status WriteLatents(const at::Tensor& latents);

  // Opens a writer for every output that consists of frames, except optional outputs that have
  // failed. The files of a second call overwrite the files of the first call. The writers must not
  // outlive this object; one thread at a time may use them.
  absl::StatusOr<std::vector<std::unique_ptr<VideoWriter>>> OpenWriters(
      const std::string& h264_preset);

 private:
  bool IsOptional(const OutputFile& output) const { return &output != outputs_.data(); }
  // Handles the failure `status` of an output. If the output is optional, tells the observer that
  // it is lost, and returns OK. If the output is not optional, returns `status`.
  absl::Status GoOnWithout(const OutputFile& output, const absl::Status& status);

  const GenerationPlan& plan_;
  const std::span<const OutputFile> outputs_;
  GenerationObserver& observer_;
  std::set<const OutputFile*> lost_;
};

}  // namespace wan
