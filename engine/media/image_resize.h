// Turns an image into the first frame of a video, by the rules of Wan2.2's models. All functions
// are thread-safe.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "engine/media/rgb_image.h"

namespace wan {

// Returns the size of TI2V-5B's video for an image of `width` x `height`: its sides are multiples
// of `multiple`, its area is at most `area` pixels, and its ratio is near that of the image. Of two
// candidates (one rounds the width down first, the other the height) the one with the nearer ratio
// wins, or the second on a tie. Returns {0, 0} if the image is so narrow that a side would be below
// `multiple`. All arguments must be above 0.
ImageSize BestOutputSize(int width, int height, int64_t area, int multiple);

// Returns the size of I2V-A14B's video: the sides of the rectangle with the given area and the
// image's ratio, each rounded down to a multiple of `multiple`. Arguments and {0, 0} as for
// BestOutputSize.
ImageSize FloorOutputSize(int width, int height, int64_t area, int multiple);

// Returns whether FloorOutputSize turns an image of the size `image` into `size` for some area.
// True for every size that it returns; rounding may also admit one that it just misses.
bool IsFloorOutputSize(ImageSize image, ImageSize size, int multiple);

// Cuts the largest part that has the ratio of `size`, to a pixel, out of the image's middle.
RgbImage CropToRatio(const RgbImage& image, ImageSize size);

// Resizes like Pillow's LANCZOS on 8 bits, with equal bits: antialiased when it shrinks, in fixed
// point, the width first, rounded to 8 bits after each of the two passes. INVALID_ARGUMENT if a
// side of `size` is not from 1 to 65500, or if the image's pixels do not match its size.
absl::StatusOr<RgbImage> ResizeLanczos(const RgbImage& image, ImageSize size);

// The most pixels to which CoverAndCrop scales an image before it cuts out the middle.
inline constexpr int64_t kMostCoveringPixels = 64'000'000;

// Scales the image with ResizeLanczos by the smallest factor that covers `size`, then cuts out the
// middle. If scaling would give more pixels than these or a side above 65500, the image is cut
// first. It returns the errors of ResizeLanczos.
absl::StatusOr<RgbImage> CoverAndCrop(const RgbImage& image, ImageSize size);

}  // namespace wan
