// Finds the nearest valid sizes to an invalid one, and the size of a video that is made from an
// image. All functions are pure.
#pragma once

#include <cstdint>
#include <string>

#include "engine/families/model_family.h"
#include "engine/media/rgb_image.h"

namespace wan {

// The grid of values first, first + step, ... that are at most `last`.
struct ValueGrid {
  int64_t first = 0;
  int64_t last = 0;
  int64_t step = 1;

  bool Contains(int64_t value) const {
    return value >= first && value <= last && (value - first) % step == 0;
  }
};

// Returns the grid's values just below and just above `value`, which is not on the grid, as text:
// "704 or 736". If `value` is beyond an end of the grid, the text has only one value: "4096".
std::string NearestIn(const ValueGrid& grid, int64_t value);

// Returns the size of the video that a model makes from an image of size `image`, by upstream's
// rule for the role: about `area` pixels, with sides that are multiples of `stride`.
ImageSize SizeOfImageVideo(ImageRole role, ImageSize image, int64_t area, int stride);

// Returns `image` with its longer side cut by as few pixels as needed, so that SizeOfImageVideo
// gives sides from `stride` to `max_side`. Returns {0, 0} if even a square image would not give
// such sides.
ImageSize CutForVideo(ImageRole role, ImageSize image, int64_t area, int stride, int max_side);

}  // namespace wan
