// Writes a video that shows two videos beside each other.
#pragma once

#include <stop_token>
#include <string>

#include "absl/status/status.h"
#include "client/compare/video_comparison.h"

namespace wan::client {

// Returns by how much to multiply the differences of pixels so that they can be seen: a power of
// two from 1 to 64 that brings the root of their mean square near 48 of 255; 0 if all frames are
// equal.
int DifferenceGain(const VideoComparison& comparison);

// Writes an MP4 file: A at the left, B in the middle and, unless `gain` is 0, the absolute
// difference of each channel times `gain` at the right, with dark bars between them. `comparison`
// must be the result of CompareVideos for the same files. `path` appears, or is replaced, once it
// is complete. INVALID_ARGUMENT if it cannot be written; the other errors are those of
// CompareVideos, and of the encoder.
absl::Status WriteSideBySide(const std::string& a, const std::string& b,
                             const VideoComparison& comparison, int gain, const std::string& path,
                             const FrameProgress& progress = nullptr,
                             const std::stop_token& stop = {});

}  // namespace wan::client
