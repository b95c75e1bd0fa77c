// Decodes picture files into the pixels that they show.
//
// Wan2.2 reads an image with Pillow's Image.open(file).convert("RGB"). The pixels here equal those
// for every picture that is opaque, has at most 8 bits a sample, and is stored as it is shown.
// Others are decoded as a browser shows them:
//   - a picture is turned and mirrored as its EXIF orientation says (ImageOps.exif_transpose);
//   - what is transparent is blended over a background (stored_image.h);
//   - samples of 16 bits become v / 257, rounded.
// Colour profiles and gamma are ignored, as by upstream. An animated PNG gives its default image.
// All functions are thread-safe.
#pragma once

#include <cstdint>
#include <stop_token>
#include <string_view>

#include "absl/status/statusor.h"
#include "engine/api/input_image.h"
#include "engine/media/rgb_image.h"

namespace wan {

// The limits are compared before any pixel is decoded and before memory for pixels is allocated.
struct ImageLimits {
  int64_t max_bytes = 32 << 20;
  int64_t max_pixels = 64'000'000;
  // Most bytes that a decoder may keep for the whole picture in addition to its pixels. A JPEG of
  // several scans keeps two bytes for each coefficient: 52 megapixels with full chroma, all sizes
  // with 4:2:0, pass.
  int64_t max_working_bytes = 300 << 20;
};

struct MeasuredImage {
  InputImage facts;            // complete except for `blended_over`, which needs the pixels
  int64_t decoding_bytes = 0;  // the most memory that DecodeImage takes, an upper bound
};

// Reads the facts of a PNG, JPEG or WebP file without decoding its pixels. It walks over the file's
// bytes at most once, with bounded memory. Accepts every file that DecodeImage accepts, with the
// same facts, and also files whose pixels are damaged or missing. Errors are those of DecodeImage.
absl::StatusOr<MeasuredImage> MeasureImage(std::string_view bytes, const ImageLimits& limits = {});

// Accepts the files that DecodeImage accepts, with the same facts and the same errors, but keeps no
// pixels. The largest pictures take about a second, and memory as docs/operate/limits.md says: less
// than a MiB for most, and at most what a decoder keeps.
absl::StatusOr<InputImage> CheckImage(std::string_view bytes, const Color& background = {},
                                      const ImageLimits& limits = {});

struct DecodedImage {
  RgbImage image;
  InputImage facts;  // facts of the file, and the steps applied to it
};

// Decodes a PNG, JPEG or WebP file. INVALID_ARGUMENT, with the reason, for another format, an
// animated WebP file, a broken or truncated file, and a file beyond the limits. CANCELLED soon
// after a stop request.
absl::StatusOr<DecodedImage> DecodeImage(std::string_view bytes, const Color& background = {},
                                         const ImageLimits& limits = {},
                                         const std::stop_token& stop = {});

}  // namespace wan
