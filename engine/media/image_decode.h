// Decodes picture files into the pixels that they show.
//
// Wan2.2 reads an image with Pillow's Image.open(file).convert("RGB"). The pixels here equal those
// for every picture that is opaque, has at most 8 bits a sample, and is stored as it is shown. For
// others, whose pixels no user of Pillow would call right, they are what a browser shows:
//   - a picture is turned and mirrored as its EXIF orientation says (ImageOps.exif_transpose);
//   - what is transparent is blended over a background (stored_image.h);
//   - samples of 16 bits become v / 257, rounded.
// Colour profiles and gamma are ignored, as by upstream. An animated PNG gives its default image.
// All functions are thread-safe.
#pragma once

#include <cstdint>
#include <string_view>

#include "absl/status/statusor.h"
#include "engine/api/input_image.h"
#include "engine/media/rgb_image.h"

namespace wan {

struct ImageLimits {
  int64_t max_bytes = 32 << 20;
  int64_t max_pixels = 64'000'000;
};

struct DecodedImage {
  RgbImage image;
  InputImage facts;  // what the file holds, and what was done with it
};

// Decodes a PNG, JPEG or WebP file. INVALID_ARGUMENT, with the reason, for another format, an
// animated WebP file, a broken or truncated file, and a file beyond the limits. The limits are
// checked before any pixel is decoded and before memory for pixels is allocated.
absl::StatusOr<DecodedImage> DecodeImage(std::string_view bytes, const Color& background = {},
                                         const ImageLimits& limits = {});

// Decoders call this as soon as they know the size. INVALID_ARGUMENT if the size is empty or beyond
// the limits.
absl::Status CheckImageSize(int64_t width, int64_t height, const ImageLimits& limits);

}  // namespace wan
