// PNG files to pixels. Through engine/media/image_decode.h; not for others.
#pragma once

#include <string_view>

#include "absl/status/statusor.h"
#include "engine/media/image_decode.h"

namespace wan {

// `bytes` starts with PNG's signature. By libpng, every chunk's checksum verified; bytes after the
// end chunk are ignored.
absl::StatusOr<RgbImage> DecodePng(std::string_view bytes, const ImageLimits& limits);

}  // namespace wan
