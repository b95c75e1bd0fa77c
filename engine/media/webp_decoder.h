// Reads WebP files with libwebp, as Pillow does. Only image_decode.cc calls it; other code uses
// engine/media/image_decode.h.
#pragma once

#include <stop_token>
#include <string_view>

#include "absl/status/statusor.h"
#include "engine/media/stored_image.h"

namespace wan {

// All of them take a file that has WebP's signature, and return the errors of DecodeImage. Call
// CheckWebp and DecodeWebp only for a file whose size, by MeasureWebp, is within the limits.

// Reads the headers of the file and its chunks. Refuses animations, because a caller of one frame
// would not expect which of them is taken.
absl::StatusOr<StoredHeader> MeasureWebp(std::string_view bytes);

// Decodes everything, but keeps no colour in full size. Returns whether any pixel is less than
// opaque.
absl::StatusOr<bool> CheckWebp(std::string_view bytes);

absl::StatusOr<StoredImage> DecodeWebp(std::string_view bytes, const std::stop_token& stop);

}  // namespace wan
