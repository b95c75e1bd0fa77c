// Decoded frames on their way to the host: conversion to 8 bits on the device, and the copy.
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/status.h"

namespace wan {

// Frames [3, n, H, W] as n RGB24 pictures, by upstream's rule for 8 bits: (x + 1) / 2 * 255, the
// fraction cut off (never rounded). Waits for the device.
std::vector<std::vector<uint8_t>> ToRgb24(const at::Tensor& frames);

// Takes the chunks of a decoder and hands their frames on, one chunk late: while the device decodes
// a chunk, the frames of the chunk before are copied and handed on. One thread at a time. What
// LibTorch throws passes through.
class FrameDownload {
 public:
  // Gets one frame, RGB24. A status that is not OK ends the download and is returned as it is.
  using Sink = std::function<absl::Status(std::vector<uint8_t> rgb24)>;

  // For frames on `device`, a CPU included; frames on a CPU are handed on at once.
  FrameDownload(at::Device device, Sink sink);
  // Waits for copies that are on their way, since their memory ends here. Hands nothing on.
  ~FrameDownload();
  FrameDownload(const FrameDownload&) = delete;
  FrameDownload& operator=(const FrameDownload&) = delete;

  // Queues conversion and copy of [3, n, H, W] and hands on what the call before queued.
  absl::Status Add(const at::Tensor& frames);

  // Hands on the last chunk.
  absl::Status Finish();

 private:
  class CopyQueue;
  struct Buffer;

  absl::Status HandOn(Buffer& buffer);

  const Sink sink_;
  // Null on a CPU.
  const std::unique_ptr<CopyQueue> queue_;
  std::array<std::unique_ptr<Buffer>, 2> buffers_;
  size_t next_ = 0;  // the buffer that the next chunk takes
};

}  // namespace wan
