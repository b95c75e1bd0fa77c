// Decodes PNG files. Only image_decode.cc calls it; other code uses engine/media/image_decode.h.
#pragma once

#include <string_view>

#include "absl/status/statusor.h"
#include "engine/media/image_decode.h"
#include "engine/media/stored_image.h"

namespace wan {

// Decodes `bytes`, which must start with PNG's signature. It uses libpng, which verifies the
// checksum of every chunk; bytes after the end chunk are ignored. Returns the errors of
// DecodeImage.
absl::StatusOr<StoredImage> DecodePng(std::string_view bytes, const ImageLimits& limits);

}  // namespace wan
