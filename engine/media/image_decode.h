// Picture files to pixels.
//
// The pixels are those that Pillow's Image.open(file).convert("RGB") gives, which is how Wan2.2
// reads an image: alpha and transparency are dropped without blending, grey and palette become RGB,
// of 16 bits the upper 8 count, colour profiles, gamma and EXIF orientation are ignored. Of an
// animated PNG the default image counts.
#pragma once

#include <cstdint>
#include <string_view>

#include "absl/status/statusor.h"
#include "engine/media/rgb_image.h"

namespace wan {

struct ImageLimits {
  int64_t max_bytes = 32 << 20;
  int64_t max_pixels = 64'000'000;
};

// Decodes a PNG or JPEG file. INVALID_ARGUMENT, saying why, for another format, a broken or
// truncated file, and a file beyond the limits; the limits are looked at before any pixel is
// decoded or memory for pixels taken.
absl::StatusOr<RgbImage> DecodeImage(std::string_view bytes, const ImageLimits& limits = {});

// For decoders, as soon as they know the size. INVALID_ARGUMENT if it is empty or beyond the
// limits.
absl::Status CheckImageSize(int64_t width, int64_t height, const ImageLimits& limits);

}  // namespace wan
