// Encodes pixels as picture files in memory. `rgb24` has the rows from top to bottom, width * 3
// bytes each. The functions return INVALID_ARGUMENT if CheckPixels refuses `rgb24`. All functions
// are thread-safe.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "absl/status/statusor.h"
#include "engine/media/rgb_image.h"

namespace wan {

// Returns a baseline JPEG file with 4:2:0 chroma. INVALID_ARGUMENT unless `quality` is from 1 to
// 100.
absl::StatusOr<std::string> EncodeJpeg(std::span<const uint8_t> rgb24, int width, int height,
                                       int quality = 85);

// Returns a PNG file with 8-bit RGB.
absl::StatusOr<std::string> EncodePng(std::span<const uint8_t> rgb24, int width, int height);

}  // namespace wan
