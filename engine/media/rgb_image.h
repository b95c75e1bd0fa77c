// The picture type that the functions of media/ take and return.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/status.h"

namespace wan {

// The longest side, in pixels, that the functions for images accept. libjpeg has this limit.
inline constexpr int kMaxImageSide = 65500;

struct ImageSize {
  int width = 0;
  int height = 0;

  friend bool operator==(const ImageSize&, const ImageSize&) = default;
};

// A picture in RGB with 8 bits per sample. The rows run from top to bottom without padding, width *
// 3 bytes each.
struct RgbImage {
  int width = 0;
  int height = 0;
  std::vector<uint8_t> pixels;

  friend bool operator==(const RgbImage&, const RgbImage&) = default;
};

// Returns INVALID_ARGUMENT unless both sides are from 1 to kMaxImageSide and `rgb24` has width *
// height * 3 bytes. Thread-safe.
absl::Status CheckPixels(std::span<const uint8_t> rgb24, int width, int height);

}  // namespace wan
