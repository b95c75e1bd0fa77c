// Decodes JPEG files. Only image_decode.cc calls it; other code uses engine/media/image_decode.h.
#pragma once

#include <string_view>

#include "absl/status/statusor.h"
#include "engine/media/image_decode.h"
#include "engine/media/stored_image.h"

namespace wan {

// Decodes `bytes`, which must start with JPEG's signature. It uses libjpeg with its default
// (accurate) transform and smooth chroma upsampling, as Pillow does: other decoders differ visibly
// at coloured edges. Returns the errors of DecodeImage.
absl::StatusOr<StoredImage> DecodeJpeg(std::string_view bytes, const ImageLimits& limits);

}  // namespace wan
