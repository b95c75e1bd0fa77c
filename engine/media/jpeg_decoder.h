// JPEG files to pixels. Through engine/media/image_decode.h; not for others.
#pragma once

#include <string_view>

#include "absl/status/statusor.h"
#include "engine/media/image_decode.h"

namespace wan {

// `bytes` starts with JPEG's signature. By libjpeg with its default (accurate) transform and smooth
// chroma upsampling, which is what Pillow uses: other decoders differ visibly at coloured edges.
absl::StatusOr<RgbImage> DecodeJpeg(std::string_view bytes, const ImageLimits& limits);

}  // namespace wan
