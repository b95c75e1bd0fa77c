// RGB frames to video files. What each format is and why: docs/media.md.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/api/generation.h"

namespace wan {

struct VideoFormat {
  int width = 0;  // pixels
  int height = 0;
  int fps = 0;  // frames a second
};

// An open file. Used by one thread at a time. After an error only destruction is left; the file,
// whole or not, is the caller's to remove.
class VideoWriter {
 public:
  virtual ~VideoWriter() = default;

  // Appends a frame: rows from the top, width * 3 bytes each (R, G, B). INVALID_ARGUMENT if the
  // size is another; else errors as OpenVideoWriter's.
  virtual absl::Status Write(std::span<const uint8_t> rgb24) = 0;

  // Writes what the encoder still holds and the file's index, and closes the file. Without it the
  // file is not playable. FAILED_PRECONDITION if there was no frame.
  virtual absl::Status Finish() = 0;
};

// Creates (or overwrites) `path`:
//   kMp4          H.264 in MP4, yuv420p, BT.709, index at the front; sides must be even
//   kLosslessMkv  FFV1 in Matroska; decodes to exactly the frames' RGB
// Errors name the path and what the library or the system said: INVALID_ARGUMENT for a kind that
// holds no frames or a format out of range (sides 16 to 16384, fps 1 to 1000), RESOURCE_EXHAUSTED
// for a full disk, NOT_FOUND and PERMISSION_DENIED as the system answers, else INTERNAL.
absl::StatusOr<std::unique_ptr<VideoWriter>> OpenVideoWriter(OutputKind kind,
                                                             const std::string& path,
                                                             const VideoFormat& format);

}  // namespace wan
