// Reads PNG files with libpng, which verifies the checksum of every chunk. Bytes after the end
// chunk are ignored. Only image_decode.cc may call it; other code uses engine/media/image_decode.h.
#pragma once

#include <stop_token>
#include <string_view>

#include "absl/status/statusor.h"
#include "engine/media/stored_image.h"

namespace wan {

// The file must start with PNG's signature. Errors are those of DecodeImage. Call CheckPng and
// DecodePng only if the size that MeasurePng returns is within the limits.

// Reads the chunks but skips the pixels; the orientation may stand after them.
absl::StatusOr<StoredHeader> MeasurePng(std::string_view bytes);

// Decodes the file row by row without keeping any row, even if the file is interlaced. Returns
// whether any pixel is not opaque.
absl::StatusOr<bool> CheckPng(std::string_view bytes);

absl::StatusOr<StoredImage> DecodePng(std::string_view bytes, const std::stop_token& stop);

}  // namespace wan
