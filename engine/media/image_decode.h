// Decodes picture files into pixels as a viewer shows them.
//
// Upstream reads images with Pillow's Image.open(file).convert("RGB"). The pixels here are the same
// if the picture is opaque, has at most 8 bits per sample and needs no rotation. Others are decoded
// as browsers show them:
//   - they are rotated and mirrored as EXIF says (ImageOps.exif_transpose);
//   - transparent pixels are blended over a background (stored_image.h);
//   - 16-bit samples become v / 257, rounded.
// Colour profiles and gamma are ignored, as upstream does. Of an animated PNG the default image is
// read. All functions are thread-safe.
#pragma once

#include <cstdint>
#include <stop_token>
#include <string_view>

#include "absl/status/statusor.h"
#include "engine/api/input_image.h"
#include "engine/media/rgb_image.h"

namespace wan {

// Limits are checked before any pixel is decoded or memory for pixels is allocated.
struct ImageLimits {
  int64_t max_bytes = 32 << 20;
  int64_t max_pixels = 64'000'000;
  // Most bytes that a decoder may hold for a whole picture besides the pixels. JPEGs with several
  // scans need two bytes per coefficient: 52 megapixels pass with full chroma, and all sizes with
  // 4:2:0.
  int64_t max_working_bytes = 300 << 20;
};

struct MeasuredImage {
  InputImage facts;            // all but `blended_over`, which needs the pixels
  int64_t decoding_bytes = 0;  // upper bound of the memory that DecodeImage takes
};

// Reads the properties of a PNG, JPEG or WebP file without decoding pixels. Reads the bytes at most
// once, in bounded memory. Accepts every file that DecodeImage accepts, with the same facts, and
// also files with damaged or missing pixels. Errors are those of DecodeImage.
absl::StatusOr<MeasuredImage> MeasureImage(std::string_view bytes, const ImageLimits& limits = {});

// Decodes as DecodeImage does, with the same facts and errors, but keeps no pixels. The largest
// pictures take about a second. Memory is below 1 MiB for most pictures and bounded by the
// decoder's own (docs/operate/limits.md).
absl::StatusOr<InputImage> CheckImage(std::string_view bytes, const Color& background = {},
                                      const ImageLimits& limits = {});

struct DecodedImage {
  RgbImage image;
  InputImage facts;  // properties of the file, and the steps applied to it
};

// Decodes a PNG, JPEG or WebP file. INVALID_ARGUMENT, with the reason, for another format, an
// animated WebP, a broken or truncated file, or one beyond the limits. CANCELLED soon after a stop
// request.
absl::StatusOr<DecodedImage> DecodeImage(std::string_view bytes, const Color& background = {},
                                         const ImageLimits& limits = {},
                                         const std::stop_token& stop = {});

}  // namespace wan
