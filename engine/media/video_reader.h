// Reads the frames of video files as RGB.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/api/frame_picture.h"

namespace wan {

// A video file that is open for reading. Not thread-safe: one thread at a time may use it.
class VideoReader {
 public:
  virtual ~VideoReader() = default;

  virtual int width() const = 0;  // pixels
  virtual int height() const = 0;
  // Frames per second, as the file states them; 0 if it states none.
  virtual double fps() const = 0;

  // Replaces `rgb24` by the next frame: rows from the top, each of width * 3 bytes (R, G, B).
  // Returns false after the last frame. DATA_LOSS, naming the file, if a frame cannot be decoded or
  // has another size.
  virtual absl::StatusOr<bool> Read(std::vector<uint8_t>& rgb24) = 0;

  // Skips the next frame: decodes it as Read does, but does not convert it.
  virtual absl::StatusOr<bool> Skip() = 0;
};

// Opens the first video stream of a file that FFmpeg's libraries know. Frames of the server's
// lossless files are exact. The reader converts YUV with the matrix that the file names. DATA_LOSS,
// naming the path and the library's message, if the file cannot be opened or has no video. Damage
// within a frame may go unnoticed; compare the checksum of a download to rule out damage.
absl::StatusOr<std::unique_ptr<VideoReader>> OpenVideoReader(const std::string& path);

// Opens the bytes of a video file; errors call the file "the video". Returns errors of `file.read`
// unchanged.
absl::StatusOr<std::unique_ptr<VideoReader>> OpenVideoReader(FileBytes file);

// All frames of a video.
struct VideoClip {
  std::vector<uint8_t> rgb;  // 8-bit RGB, [frames, height, width, 3], row-major
  int frames = 0;
  int height = 0;
  int width = 0;
};

// Reads a whole file. Returns the errors of OpenVideoReader and Read, and DATA_LOSS for a file
// without frames.
absl::StatusOr<VideoClip> ReadVideo(const std::string& path);

}  // namespace wan
