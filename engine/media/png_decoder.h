// Reads PNG files with libpng, which verifies the checksum of every chunk; bytes after the end
// chunk are ignored. Only image_decode.cc calls it; other code uses engine/media/image_decode.h.
#pragma once

#include <stop_token>
#include <string_view>

#include "absl/status/statusor.h"
#include "engine/media/stored_image.h"

namespace wan {

// All of them take a file that starts with PNG's signature, and return the errors of DecodeImage.
// Call CheckPng and DecodePng only for a file whose size, by MeasurePng, is within the limits.

// Reads up to the pixels. The orientation may come after them; they are skipped.
absl::StatusOr<StoredHeader> MeasurePng(std::string_view bytes);

// Decodes row by row and keeps none, also of an interlaced file. Returns whether any pixel is less
// than opaque.
absl::StatusOr<bool> CheckPng(std::string_view bytes);

absl::StatusOr<StoredImage> DecodePng(std::string_view bytes, const std::stop_token& stop);

}  // namespace wan
