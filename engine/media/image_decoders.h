// The decoders of picture files. Only image_decode.cc may call them; other code uses
// engine/media/image_decode.h.
//
// All functions take a file with the format's signature, and return the errors of DecodeImage.
//   Measure  reads the headers only
//   Check    decodes everything but keeps no pixels; returns whether any pixel is not opaque
//   Decode   decodes the pixels; CANCELLED soon after a stop request
// Call Check and Decode only if the size and working memory of Measure are within the limits.
#pragma once

#include <stop_token>
#include <string_view>

#include "absl/status/statusor.h"
#include "engine/media/stored_image.h"

namespace wan {

// Uses libpng, which verifies every chunk's checksum; bytes after the end chunk are ignored.
// Measure also reads the chunks after the pixels, because one of them may have the orientation.
absl::StatusOr<StoredHeader> MeasurePng(std::string_view bytes);
absl::StatusOr<bool> CheckPng(std::string_view bytes);
absl::StatusOr<StoredImage> DecodePng(std::string_view bytes, const std::stop_token& stop);

// Uses libjpeg's accurate transform and smooth chroma upsampling, as Pillow does: other decoders
// differ visibly at coloured edges. Refuses a file that has more scans than its size allows.
absl::StatusOr<StoredHeader> MeasureJpeg(std::string_view bytes);
absl::StatusOr<bool> CheckJpeg(std::string_view bytes);
absl::StatusOr<StoredImage> DecodeJpeg(std::string_view bytes, const std::stop_token& stop);

// Uses libwebp, as Pillow does. Refuses animations, because a caller wants one frame and could not
// tell which one it gets.
absl::StatusOr<StoredHeader> MeasureWebp(std::string_view bytes);
absl::StatusOr<bool> CheckWebp(std::string_view bytes);
absl::StatusOr<StoredImage> DecodeWebp(std::string_view bytes, const std::stop_token& stop);

}  // namespace wan
