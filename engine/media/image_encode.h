// Pixels to picture files in memory. `rgb24` holds rows from the top, width * 3 bytes each.
// INVALID_ARGUMENT as CheckPixels.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "absl/status/statusor.h"
#include "engine/media/rgb_image.h"

namespace wan {

// Baseline JPEG with 4:2:0 chroma. `quality` 1 to 100.
absl::StatusOr<std::string> EncodeJpeg(std::span<const uint8_t> rgb24, int width, int height,
                                       int quality = 85);

// PNG, 8-bit RGB.
absl::StatusOr<std::string> EncodePng(std::span<const uint8_t> rgb24, int width, int height);

}  // namespace wan
