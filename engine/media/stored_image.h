// A picture as its file stores it, and the two steps that make the picture that a viewer shows:
// blending and rotation.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/api/input_image.h"
#include "engine/media/rgb_image.h"

namespace wan {

// The properties of a file that are known before its pixels are decoded.
struct StoredHeader {
  int width = 0;
  int height = 0;
  // Samples per pixel: 3 are red, green and blue. 4 also have opacity, from 0 (transparent) to 255;
  // colours are not premultiplied.
  int channels = 3;
  int exif_orientation = 1;
  int bits_per_sample = 8;  // bits per sample in the file; decoded samples have 8
  bool grey = false;        // true: the file has no colours
  // Bytes that decoding needs in addition to the pixels, if they grow with the number of pixels.
  int64_t working_bytes = 0;
};

// The picture that every decoder returns. The rows run from top to bottom without padding.
struct StoredImage {
  int width = 0;
  int height = 0;
  int channels = 3;  // samples per pixel, as in StoredHeader
  std::vector<uint8_t> pixels;
};

inline constexpr uint8_t kOpaque = 255;

struct BlendedImage {
  RgbImage image;
  bool had_transparency = false;  // true: the stored picture had transparent pixels
};

// Blends the picture over `background`. Each sample becomes (c * a + b * (255 - a)) / 255, rounded,
// where c is the picture's sample, b the background's, and a the opacity. The formula uses sRGB
// values directly, as browsers do. A picture without opacity stays as it is.
BlendedImage Blend(StoredImage stored, const Color& background);

// Returns whether EXIF orientation 1 to 8 swaps width and height.
bool ExchangesSides(int exif_orientation);

// Rotates and mirrors the picture as the EXIF orientation (1 to 8) says, so that it stands upright.
RgbImage Turn(RgbImage image, int exif_orientation);

}  // namespace wan
