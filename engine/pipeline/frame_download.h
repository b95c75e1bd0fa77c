// Converts decoded frames to 8 bits on the device and copies them to the host.
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/status.h"

namespace wan {

// Hands the frames of a decoder's chunks to a sink, one chunk late: while the device decodes a
// chunk, the previous chunk is copied to the host and handed on. Frames [3, n, H, W] become n
// pictures in RGB24. Upstream's rule is (x + 1) / 2 * 255, truncated, not rounded. Not thread-safe.
// Exceptions of LibTorch pass through.
class FrameDownload {
 public:
  // Receives one RGB24 frame. An error that the sink returns ends the download and is returned
  // unchanged.
  using Sink = std::function<absl::Status(std::vector<uint8_t> rgb24)>;

  // Accepts chunks of at most `most_frames` frames that are on `device`. Frames on a CPU are handed
  // on at once.
  FrameDownload(at::Device device, int64_t most_frames, Sink sink);
  // Waits for running copies, because their memory is freed. No frame is handed on.
  ~FrameDownload();
  FrameDownload(const FrameDownload&) = delete;
  FrameDownload& operator=(const FrameDownload&) = delete;

  // Queues conversion and copy of a chunk [3, n, H, W], and hands on the frames of the previous
  // chunk.
  absl::Status Add(const at::Tensor& frames);

  // Hands on the frames of the last chunk. Call Finish at the end of a video; another video may
  // follow.
  absl::Status Finish();

 private:
  class CopyQueue;
  struct Buffer;

  absl::Status HandOn(Buffer& buffer);

  const int64_t most_frames_;
  const Sink sink_;
  // Null if the device is a CPU.
  const std::unique_ptr<CopyQueue> queue_;
  std::array<std::unique_ptr<Buffer>, 2> buffers_;
  size_t next_ = 0;  // index of the buffer that the next chunk will use
};

}  // namespace wan
