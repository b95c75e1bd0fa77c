// Finds the sizes nearest to one that a request gets wrong, and the size of a video that is made of
// an image. All functions are pure.
#pragma once

#include <cstdint>
#include <string>

#include "engine/families/model_family.h"
#include "engine/media/rgb_image.h"

namespace wan {

// The values first, first + step, ... up to `last` at most.
struct ValueGrid {
  int64_t first = 0;
  int64_t last = 0;
  int64_t step = 1;

  bool Contains(int64_t value) const {
    return value >= first && value <= last && (value - first) % step == 0;
  }
};

// Returns the grid's nearest values below and above a value that it does not contain: "704 or 736";
// at the end of the grid only one: "4096".
std::string NearestIn(const ValueGrid& grid, int64_t value);

// Returns the size of the video that a model makes of an image of the size `image`, with about
// `area` pixels and sides that are multiples of `stride`: upstream's rule for the role.
ImageSize SizeOfImageVideo(ImageRole role, ImageSize image, int64_t area, int stride);

// Returns `image` with its longer side cut until SizeOfImageVideo gives sides from `stride` to
// `max_side`, by no pixel more than needed; {0, 0} if not even the square does.
ImageSize CutForVideo(ImageRole role, ImageSize image, int64_t area, int stride, int max_side);

}  // namespace wan
