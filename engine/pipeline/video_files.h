// Writes the files that a job asked for.
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

  // Opens a writer for every output with frames, except those that were lost. Files that an earlier
  // call opened begin again. The writers must not outlive this object; one thread at a time may use
  // them.
  absl::StatusOr<std::vector<std::unique_ptr<VideoWriter>>> OpenWriters(
      const std::string& h264_preset);

 private:
  bool IsOptional(const OutputFile& output) const { return &output != outputs_.data(); }
  // Returns OK if the job may go on without the output, else `status`.
  absl::Status GoOnWithout(const OutputFile& output, const absl::Status& status);

  const GenerationPlan& plan_;
  const std::span<const OutputFile> outputs_;
  GenerationObserver& observer_;
  std::set<const OutputFile*> lost_;
};

}  // namespace wan
