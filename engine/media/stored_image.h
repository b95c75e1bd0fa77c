// A picture as its file stores it, and the two steps to the picture as shown: blending and turning.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/api/input_image.h"
#include "engine/media/rgb_image.h"

namespace wan {

// The facts of a file before its pixels are decoded.
struct StoredHeader {
  int width = 0;
  int height = 0;
  // 3: red, green, blue. 4: also opacity, 0 (transparent) to 255, not premultiplied.
  int channels = 3;
  int exif_orientation = 1;
  int bits_per_sample = 8;  // in the file; decoded samples always have 8
  bool grey = false;        // the file has no colours
  // Memory that decoding takes in addition to the pixels, if it grows with them.
  int64_t working_bytes = 0;
};

// The result of every decoder. Rows run from the top, without padding.
struct StoredImage {
  int width = 0;
  int height = 0;
  int channels = 3;  // as StoredHeader::channels
  std::vector<uint8_t> pixels;
};

inline constexpr uint8_t kOpaque = 255;

struct BlendedImage {
  RgbImage image;
  bool had_transparency = false;  // whether any pixel was less than opaque
};

// Blends the picture over `background`: each sample becomes (c * a + b * (255 - a)) / 255, rounded,
// where c is the picture's, b the background's, and a the opacity. It computes with the sRGB values
// themselves, as browsers do. Leaves a picture without opacity as it is.
BlendedImage Blend(StoredImage stored, const Color& background);

// Returns whether an EXIF orientation from 1 to 8 exchanges width and height.
bool ExchangesSides(int exif_orientation);

// Turns and mirrors the picture as an EXIF orientation from 1 to 8 says, so that its top is up.
RgbImage Turn(RgbImage image, int exif_orientation);

}  // namespace wan
