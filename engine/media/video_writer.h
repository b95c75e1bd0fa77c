// Writes RGB frames to video files. docs/design/media.md explains the formats.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/api/generation.h"
#include "engine/api/h264.h"

namespace wan {

struct VideoFormat {
  int width = 0;  // pixels
  int height = 0;
  int fps = 0;            // frames per second
  H264Options h264 = {};  // used only for kMp4
  // Upper limit of frames; 0: unknown. If it is set, a kMp4 file needs no second pass that moves
  // the pictures behind the index.
  int frames = 0;
};

// A video file that is open for writing. Not thread-safe: one thread at a time may use it. After an
// error the caller may only destroy it. The caller removes the file if it does not want it.
class VideoWriter {
 public:
  virtual ~VideoWriter() = default;

  // Appends a frame: rows from the top, each of width * 3 bytes (R, G, B). INVALID_ARGUMENT if
  // `rgb24` has another size or format.frames is exceeded; otherwise the errors of OpenVideoWriter.
  virtual absl::Status Write(std::span<const uint8_t> rgb24) = 0;

  // Writes the frames that the encoder still holds, and the index, and closes the file. Before this
  // call the file is not playable. FAILED_PRECONDITION if no frame was written.
  virtual absl::Status Finish() = 0;
};

// Creates (or overwrites) `path`:
//   kMp4          H.264 in MP4, yuv420p, BT.709, index at the front; sides must be even
//   kLosslessMkv  FFV1 in Matroska; decoding gives exactly the frames' RGB
// Errors name the path and quote the library or the system: INVALID_ARGUMENT for a kind without
// frames or a format out of range (sides 16 to 16384, fps 1 to 1000), RESOURCE_EXHAUSTED for a full
// disk, NOT_FOUND and PERMISSION_DENIED as the system reports them, and INTERNAL otherwise. Any
// thread may call it.
absl::StatusOr<std::unique_ptr<VideoWriter>> OpenVideoWriter(OutputKind kind,
                                                             const std::string& path,
                                                             const VideoFormat& format);

}  // namespace wan
