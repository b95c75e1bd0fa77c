// How an image becomes a video's first frame, by the rules of Wan2.2's models.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "engine/media/rgb_image.h"

namespace wan {

// TI2V-5B's size of the video for an image of `width` x `height`: sides are multiples of
// `multiple`, the area is at most `area` pixels, the ratio is near the image's. Of two candidates
// (one rounds the width down first, the other the height) the one with the nearer ratio wins, the
// second on a tie. {0, 0} if the image is so narrow that a side would be below `multiple`. All
// arguments are above 0.
ImageSize BestOutputSize(int width, int height, int64_t area, int multiple);

// I2V-A14B's: both sides of the rectangle that has the area and the image's ratio, each rounded
// down to a multiple of `multiple`. {0, 0} and arguments as above.
ImageSize FloorOutputSize(int width, int height, int64_t area, int multiple);

// Pillow's LANCZOS on 8 bits, to the last bit: antialiased when it shrinks, in fixed point, width
// first, rounded to 8 bits after each of the two passes. INVALID_ARGUMENT if a side of `size` is
// not from 1 to 65500, or the image's pixels do not match its size.
absl::StatusOr<RgbImage> ResizeLanczos(const RgbImage& image, ImageSize size);

// Scales the image (ResizeLanczos) by the smallest factor that covers `size`, then cuts the middle
// out. Errors as ResizeLanczos.
absl::StatusOr<RgbImage> CoverAndCrop(const RgbImage& image, ImageSize size);

}  // namespace wan
