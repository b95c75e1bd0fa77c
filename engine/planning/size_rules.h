// Finds the nearest valid sizes for an invalid one, and the size of a video made from an image. All
// functions are pure.
#pragma once

#include <cstdint>
#include <string>

#include "engine/families/model_family.h"
#include "engine/media/rgb_image.h"

namespace wan {

// The values first, first + step, ... that are at most `last`.
struct ValueGrid {
  int64_t first = 0;
  int64_t last = 0;
  int64_t step = 1;

  bool Contains(int64_t value) const {
    return value >= first && value <= last && (value - first) % step == 0;
  }
};

// Returns the grid's nearest values below and above `value`, which is not on the grid: "704 or
// 736"; beyond an end only one: "4096".
std::string NearestIn(const ValueGrid& grid, int64_t value);

// Returns the size of the video that a model makes from an image of size `image`, by upstream's
// rule for the role: about `area` pixels, with sides that are multiples of `stride`.
ImageSize SizeOfImageVideo(ImageRole role, ImageSize image, int64_t area, int stride);

// Returns `image` with its longer side cut by as few pixels as needed for SizeOfImageVideo to give
// sides from `stride` to `max_side`; {0, 0} if even the square does not.
ImageSize CutForVideo(ImageRole role, ImageSize image, int64_t area, int stride, int max_side);

}  // namespace wan
