// Reads JPEG files with libjpeg. Only image_decode.cc may call it; other code uses
// engine/media/image_decode.h.
#pragma once

#include <stop_token>
#include <string_view>

#include "absl/status/statusor.h"
#include "engine/media/stored_image.h"

namespace wan {

// All functions take a file that starts with JPEG's signature, and return the errors of
// DecodeImage. Call CheckJpeg and DecodeJpeg only if MeasureJpeg's size and working memory are
// within the limits. A file is refused if it has more scans than its size allows.

// Reads the file up to its first scan.
absl::StatusOr<StoredHeader> MeasureJpeg(std::string_view bytes);

// Decodes all data at an eighth of the size and drops the rows. Returns false, because JPEG has no
// opacity.
absl::StatusOr<bool> CheckJpeg(std::string_view bytes);

// Uses libjpeg's accurate transform and smooth chroma upsampling, as Pillow does: other decoders
// differ visibly at coloured edges.
absl::StatusOr<StoredImage> DecodeJpeg(std::string_view bytes, const std::stop_token& stop);

}  // namespace wan
