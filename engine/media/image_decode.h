// Decodes picture files into pixels.
//
// The pixels equal those of Pillow's Image.open(file).convert("RGB"), with which Wan2.2 reads an
// image: alpha and transparency are dropped without blending, grey and palette become RGB, the
// upper 8 of 16 bits are kept, and colour profiles, gamma and EXIF orientation are ignored. An
// animated PNG gives its default image. All functions are thread-safe.
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

// Decodes a PNG or JPEG file. INVALID_ARGUMENT, with the reason, for another format, a broken or
// truncated file, and a file beyond the limits. The limits are checked before any pixel is decoded
// and before memory for pixels is allocated.
absl::StatusOr<RgbImage> DecodeImage(std::string_view bytes, const ImageLimits& limits = {});

// Decoders call this as soon as they know the size. INVALID_ARGUMENT if the size is empty or beyond
// the limits.
absl::Status CheckImageSize(int64_t width, int64_t height, const ImageLimits& limits);

}  // namespace wan
