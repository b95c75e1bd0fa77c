// Fits an image to the first frame of a video by the rules of Wan2.2's models. All functions are
// thread-safe.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "engine/media/rgb_image.h"

namespace wan {

// Returns the size of the video that TI2V-5B makes from an image of `width` x `height`. The sides
// of the video are multiples of `multiple`, its area is at most `area` pixels, and its aspect ratio
// is near the image's. The function compares two candidates: one rounds the width down first, the
// other the height. The candidate with the nearer ratio wins; on a tie, the second candidate wins.
// Returns {0, 0} if a side would be shorter than `multiple`. All arguments must be above 0.
ImageSize BestOutputSize(int width, int height, int64_t area, int multiple);

// Returns the size of the video that I2V-A14B makes from an image: the sides of a rectangle with
// the given area and the image's ratio, each side rounded down to a multiple of `multiple`. Takes
// the arguments of BestOutputSize, and returns {0, 0} in the same case.
ImageSize FloorOutputSize(int width, int height, int64_t area, int multiple);

// Returns whether there is an area for which FloorOutputSize gives `size` for an image of size
// `image`. If such an area exists, the result is always true. Because of rounding, the result may
// also be true for a size that FloorOutputSize just misses.
bool IsFloorOutputSize(ImageSize image, ImageSize size, int multiple);

// Returns the largest part of the image that has the ratio of `size`, to within a pixel, cut out of
// the middle.
RgbImage CropToRatio(const RgbImage& image, ImageSize size);

// Resizes with the same bits as Pillow's 8-bit LANCZOS: antialiased when shrinking, in fixed point,
// the width first, rounded to 8 bits after each pass. INVALID_ARGUMENT if a side of `size` is not
// from 1 to 65500, or if the image's bytes do not match its size.
absl::StatusOr<RgbImage> ResizeLanczos(const RgbImage& image, ImageSize size);

// Maximum number of pixels to which CoverAndCrop scales an image before it cuts out the middle.
inline constexpr int64_t kMostCoveringPixels = 64'000'000;

// Scales the image with ResizeLanczos by the smallest factor with which it covers `size`, then cuts
// out the middle. If the scaled image would have more than kMostCoveringPixels pixels or a side
// above 65500, the function cuts first. Returns the errors of ResizeLanczos.
absl::StatusOr<RgbImage> CoverAndCrop(const RgbImage& image, ImageSize size);

}  // namespace wan
