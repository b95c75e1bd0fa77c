// A picture in memory.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/status.h"

namespace wan {

// The largest side that the image functions take: libjpeg's limit.
inline constexpr int kMaxImageSide = 65500;

struct ImageSize {
  int width = 0;
  int height = 0;

  friend bool operator==(const ImageSize&, const ImageSize&) = default;
};

// 8-bit RGB: rows from the top, each of width * 3 bytes, no padding.
struct RgbImage {
  int width = 0;
  int height = 0;
  std::vector<uint8_t> pixels;

  friend bool operator==(const RgbImage&, const RgbImage&) = default;
};

// INVALID_ARGUMENT unless both sides are from 1 to kMaxImageSide and `rgb24` holds that many
// pixels.
absl::Status CheckPixels(std::span<const uint8_t> rgb24, int width, int height);

}  // namespace wan
