// Makes pictures of the frames of a finished video. engine/media implements it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"

namespace wan {

// The bytes of a file. `read` returns at most `most` bytes from `offset` on, and none at the end of
// the file.
struct FileBytes {
  uint64_t size = 0;
  std::function<absl::StatusOr<std::string>(uint64_t offset, size_t most)> read;
};

// Frames of a video at equal distances, row by row, the first and the last frame included. A grid
// of one frame shows the video's first frame.
struct FrameGrid {
  int frames = 1;      // of the whole video
  int shown = 1;       // from 1 to `frames`
  int columns = 1;     // from 1 to `shown`
  int most_width = 0;  // most pixels across one frame; frames are never enlarged
};

// Makes one picture in steps, so that the thread can do other work between them. Not thread-safe,
// but each step may run on another thread. Takes memory for a few frames and for the picture.
class FramePicture {
 public:
  virtual ~FramePicture() = default;

  // Decodes up to the next frame that the picture shows. Returns whether the picture is complete;
  // then call Jpeg, and not Step. DATA_LOSS if the file is damaged; the error of FileBytes::read.
  virtual absl::StatusOr<bool> Step() = 0;

  // Returns the picture as a JPEG file.
  virtual absl::StatusOr<std::string> Jpeg() const = 0;
};

// Opens a video file of any format that the engine writes. DATA_LOSS if it cannot be read, and
// INVALID_ARGUMENT if the grid is not within the bounds.
absl::StatusOr<std::unique_ptr<FramePicture>> OpenFramePicture(FileBytes file,
                                                               const FrameGrid& grid);

}  // namespace wan
