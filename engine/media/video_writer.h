// Writes frames in RGB to video files. docs/design/media.md explains the formats.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/api/generation.h"
#include "engine/api/h264.h"

namespace wan {

// Receives the parts of a video while it is made. The writer calls it on the thread that uses the
// writer.
using OnVideoPart = std::function<void(const VideoPart&)>;

struct VideoFormat {
  int width = 0;  // size in pixels
  int height = 0;
  int fps = 0;            // frames per second
  H264Options h264 = {};  // settings of kMp4; other kinds ignore them
  // Maximum number of frames that will be added; 0: unknown. If this number is given, a kMp4 file
  // needs no second pass that makes room for the index at its front.
  int frames = 0;
  // If not null, also receives the packets of a kMp4 file as a fragmented MP4, for players that
  // show the video while it is made. Finish delivers the last part. The file has the same bytes
  // either way. Files of other kinds ignore on_part.
  OnVideoPart on_part = nullptr;
};

// A video file that is being written. Not thread-safe: only one thread at a time may use it. After
// an error the caller may only destroy the object. If the caller does not want the file, it must
// remove the file.
class VideoWriter {
 public:
  virtual ~VideoWriter() = default;

  // Appends a frame, given as rows from top to bottom of width * 3 bytes each (R, G, B).
  // INVALID_ARGUMENT if `rgb24` has another size, or if there are more frames than format.frames;
  // otherwise the errors of OpenVideoWriter.
  virtual absl::Status Write(std::span<const uint8_t> rgb24) = 0;

  // Writes the frames that the encoder still holds and the index, and closes the file. The file
  // cannot be played before this call. FAILED_PRECONDITION if no frame was added.
  virtual absl::Status Finish() = 0;
};

// Creates (or overwrites) `path`:
//   kMp4          The file has H.264 in MP4, yuv420p, BT.709, the index at the front. Sides must
//                 be even.
//   kLosslessMkv  The file has FFV1 in Matroska. Decoding gives exactly the frames' RGB.
// Errors name the path and quote the library or the system. INVALID_ARGUMENT for a kind without
// frames or a format out of range (sides 16 to 16384, fps 1 to 1000). RESOURCE_EXHAUSTED if the
// disk is full. NOT_FOUND and PERMISSION_DENIED as the system reports them, and INTERNAL otherwise.
// Any thread may call the function.
absl::StatusOr<std::unique_ptr<VideoWriter>> OpenVideoWriter(OutputKind kind,
                                                             const std::string& path,
                                                             const VideoFormat& format);

}  // namespace wan
