// Reads JPEG files with libjpeg. Only image_decode.cc calls it; other code uses
// engine/media/image_decode.h.
#pragma once

#include <stop_token>
#include <string_view>

#include "absl/status/statusor.h"
#include "engine/media/stored_image.h"

namespace wan {

// All of them take a file that starts with JPEG's signature, and return the errors of DecodeImage.
// Call CheckJpeg and DecodeJpeg only for a file whose size and working memory, by MeasureJpeg, are
// within the limits. A file of several scans is refused when it has more than its size allows.

// Reads up to the first scan.
absl::StatusOr<StoredHeader> MeasureJpeg(std::string_view bytes);

// Decodes all data, into a picture of an eighth of the size whose rows are dropped. Returns false,
// because JPEG has no opacity.
absl::StatusOr<bool> CheckJpeg(std::string_view bytes);

// Uses libjpeg's default (accurate) transform and smooth chroma upsampling, as Pillow does: other
// decoders differ visibly at coloured edges.
absl::StatusOr<StoredImage> DecodeJpeg(std::string_view bytes, const std::stop_token& stop);

}  // namespace wan
