// A picture in memory.
#pragma once

#include <cstdint>
#include <vector>

namespace wan {

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

}  // namespace wan
