// A picture as its file stores it, and the two steps to what a viewer shows: blending and rotation.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/api/input_image.h"
#include "engine/media/rgb_image.h"

namespace wan {

// Properties of a file that are known before its pixels are decoded.
struct StoredHeader {
  int width = 0;
  int height = 0;
  // 3: red, green, blue. 4: also opacity, 0 (transparent) to 255, not premultiplied.
  int channels = 3;
  int exif_orientation = 1;
  int bits_per_sample = 8;  // in the file; decoded samples have 8
  bool grey = false;        // the file has no colours
  // Memory for decoding besides the pixels, if it grows with their number.
  int64_t working_bytes = 0;
};

// The result of every decoder. Rows run from the top, without padding.
struct StoredImage {
  int width = 0;
  int height = 0;
  int channels = 3;  // as in StoredHeader
  std::vector<uint8_t> pixels;
};

inline constexpr uint8_t kOpaque = 255;

struct BlendedImage {
  RgbImage image;
  bool had_transparency = false;  // whether any pixel was not opaque
};

// Blends the picture over `background`: each sample becomes (c * a + b * (255 - a)) / 255, rounded,
// with picture c, background b and opacity a. It uses sRGB values directly, as browsers do. A
// picture without opacity is not changed.
BlendedImage Blend(StoredImage stored, const Color& background);

// Returns whether EXIF orientation 1 to 8 swaps width and height.
bool ExchangesSides(int exif_orientation);

// Rotates and mirrors the picture as EXIF orientation 1 to 8 says, so that its top is up.
RgbImage Turn(RgbImage image, int exif_orientation);

}  // namespace wan
