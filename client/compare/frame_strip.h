// Makes small pictures of a video's frames, for reports.
#pragma once

#include <stop_token>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace wan::client {

// A strip has this many frames, spread evenly from the first to the last.
inline constexpr int kStripFrames = 6;
// Wider frames are made as narrow as this.
inline constexpr int kStripWidth = 256;

// Returns JPEG files of frames of a video file, from the first to the last; all frames if the video
// has at most kStripFrames. `frames` is the number of frames of the video, above 0; if the file has
// more, FrameStrip ignores the frames after them. Errors: DATA_LOSS, naming the file, if it is not
// a video or cannot be decoded; CANCELLED after a stop.
absl::StatusOr<std::vector<std::string>> FrameStrip(const std::string& path, int frames,
                                                    const std::stop_token& stop = {});

}  // namespace wan::client
