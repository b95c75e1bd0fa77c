// Reads JPEG files with libjpeg. Only image_decode.cc may call it; other code uses
// engine/media/image_decode.h.
#pragma once

#include <stop_token>
#include <string_view>

#include "absl/status/statusor.h"
#include "engine/media/stored_image.h"

namespace wan {

// The file must start with JPEG's signature. Errors are those of DecodeImage. Call CheckJpeg and
// DecodeJpeg only if the size and the working memory that MeasureJpeg returns are within the
// limits. All functions refuse a file that has more scans than its size allows.

// Reads the file up to its first scan, and returns its properties.
absl::StatusOr<StoredHeader> MeasureJpeg(std::string_view bytes);

// Decodes all data at an eighth of the size, and drops the rows. Returns false, because a JPEG file
// has no opacity.
absl::StatusOr<bool> CheckJpeg(std::string_view bytes);

// Uses libjpeg's accurate transform and smooth chroma upsampling, as Pillow does. Other decoders
// give visibly different pixels at coloured edges.
absl::StatusOr<StoredImage> DecodeJpeg(std::string_view bytes, const std::stop_token& stop);

}  // namespace wan
