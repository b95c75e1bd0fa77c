// Decodes picture files into the pixels that a viewer shows.
//
// Upstream reads images with Pillow's Image.open(file).convert("RGB"). The pixels here are equal to
// upstream's if the picture is opaque, has at most 8 bits per sample and needs no rotation. Other
// pictures are decoded as browsers show them:
//   - they are rotated and mirrored as EXIF says (ImageOps.exif_transpose);
//   - transparent pixels are blended over a background (stored_image.h);
//   - 16-bit samples become v / 257, rounded.
// Colour profiles and gamma are ignored, as upstream does. From an animated PNG file, only the
// default image is read. All functions are thread-safe.
#pragma once

#include <cstdint>
#include <stop_token>
#include <string_view>

#include "absl/status/statusor.h"
#include "engine/api/input_image.h"
#include "engine/media/rgb_image.h"

namespace wan {

// These limits are checked before any pixel is decoded and before memory for pixels is allocated.
struct ImageLimits {
  int64_t max_bytes = 32 << 20;
  int64_t max_pixels = 64'000'000;
  // The maximum number of bytes that a decoder may hold for a whole picture in addition to its
  // pixels. JPEG files with several scans need two bytes per coefficient. So 52 megapixels pass
  // with full chroma, and all sizes with 4:2:0.
  int64_t max_working_bytes = 300 << 20;
};

struct MeasuredImage {
  InputImage facts;            // complete except for `blended_over`, which the pixels decide
  int64_t decoding_bytes = 0;  // upper bound of the bytes that DecodeImage takes
};

// Reads the properties of a PNG, JPEG or WebP file without decoding its pixels. The function reads
// each byte at most once and needs a bounded amount of memory. The function accepts every file that
// DecodeImage accepts, and reports the same facts. The function also accepts files with damaged or
// missing pixels. All errors are among those of DecodeImage.
absl::StatusOr<MeasuredImage> MeasureImage(std::string_view bytes, const ImageLimits& limits = {});

// Decodes as DecodeImage does, with the same facts and errors, but keeps no pixels. For the largest
// pictures this takes about a second. The check takes less than 1 MiB of memory for most pictures,
// and never more than the decoder itself needs (docs/operate/limits.md).
absl::StatusOr<InputImage> CheckImage(std::string_view bytes, const Color& background = {},
                                      const ImageLimits& limits = {});

struct DecodedImage {
  RgbImage image;
  InputImage facts;  // properties of the file, and what was done to its pixels
};

// Decodes a PNG, JPEG or WebP file. INVALID_ARGUMENT, with the reason, if the file has another
// format, is an animated WebP file, or is broken, truncated or beyond the limits. After a stop
// request, returns CANCELLED soon.
absl::StatusOr<DecodedImage> DecodeImage(std::string_view bytes, const Color& background = {},
                                         const ImageLimits& limits = {},
                                         const std::stop_token& stop = {});

}  // namespace wan
