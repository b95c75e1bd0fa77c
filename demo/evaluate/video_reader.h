// Reads the frames of a video file as pixels.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "demo/evaluate/detector.h"

namespace wan::demo {

struct Clip {
  std::vector<uint8_t> rgb;  // the layout is that of ClipView
  int frames = 0;
  int height = 0;
  int width = 0;

  ClipView view() const { return {rgb, frames, height, width}; }
};

// Reads the first video stream of a file that FFmpeg's libraries know. The pixels are exact for the
// lossless mkv that the server makes. Fails with DATA_LOSS, naming the path and what the library
// said, if the file has no video that can be read. Does not look for damage within a frame, because
// the checksum of the download has ruled that out.
absl::StatusOr<Clip> ReadVideo(const std::string& path);

}  // namespace wan::demo
