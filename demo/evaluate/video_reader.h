// A video file's frames as pixels.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "demo/evaluate/detector.h"

namespace wan::demo {

struct Clip {
  std::vector<uint8_t> rgb;  // as ClipView's
  int frames = 0;
  int height = 0;
  int width = 0;

  ClipView view() const { return {rgb, frames, height, width}; }
};

// The first video stream of a file that FFmpeg's libraries know. Exact for the server's lossless
// mkv. DATA_LOSS, naming the path and what the library said, for a file without a video that can be
// read. Damage within a frame is not looked for: the download's checksum has ruled it out.
absl::StatusOr<Clip> ReadVideo(const std::string& path);

}  // namespace wan::demo
