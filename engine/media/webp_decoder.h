// Decodes WebP files. Only image_decode.cc calls it; other code uses engine/media/image_decode.h.
#pragma once

#include <string_view>

#include "absl/status/statusor.h"
#include "engine/media/image_decode.h"
#include "engine/media/stored_image.h"

namespace wan {

// Decodes `bytes`, which must have WebP's signature, with libwebp, as Pillow does. Animations are
// refused, because a caller of one frame would not expect which of them is taken. Returns the
// errors of DecodeImage.
absl::StatusOr<StoredImage> DecodeWebp(std::string_view bytes, const ImageLimits& limits);

}  // namespace wan
