// Reads WebP files with libwebp, as Pillow does. Only image_decode.cc may call it; other code uses
// engine/media/image_decode.h.
#pragma once

#include <stop_token>
#include <string_view>

#include "absl/status/statusor.h"
#include "engine/media/stored_image.h"

namespace wan {

// The file must have WebP's signature. Errors are those of DecodeImage. Call CheckWebp and
// DecodeWebp only if the size that MeasureWebp returns is within the limits.

// Reads the headers of the file and of its chunks, and returns its properties. The function refuses
// animations, because a caller wants one frame and could not tell which one it would get.
absl::StatusOr<StoredHeader> MeasureWebp(std::string_view bytes);

// Decodes the whole file, but keeps no colours in full size. Returns whether any pixel is not
// opaque.
absl::StatusOr<bool> CheckWebp(std::string_view bytes);

absl::StatusOr<StoredImage> DecodeWebp(std::string_view bytes, const std::stop_token& stop);

}  // namespace wan
