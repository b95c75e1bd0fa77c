// Writes a video that shows two videos side by side.
#pragma once

#include <stop_token>
#include <string>

#include "absl/status/status.h"
#include "client/compare/video_comparison.h"

namespace wan::client {

// Returns the factor that makes the differences of pixels visible: the power of two from 1 to 64
// that brings their root mean square nearest to 48 of 255; 0 if all frames are equal.
int DifferenceGain(const VideoComparison& comparison);

// Writes an MP4 file: A at the left, B in the middle and, unless `gain` is 0, the absolute
// difference of each channel times `gain` at the right, with dark bars between them. `comparison`
// must be the result of CompareVideos for the same files. A complete file replaces `path`; an
// incomplete one never has this name. INVALID_ARGUMENT if `path` cannot be written; other errors
// are those of CompareVideos and of the encoder.
absl::Status WriteSideBySide(const std::string& a, const std::string& b,
                             const VideoComparison& comparison, int gain, const std::string& path,
                             const FrameProgress& progress = nullptr,
                             const std::stop_token& stop = {});

}  // namespace wan::client
