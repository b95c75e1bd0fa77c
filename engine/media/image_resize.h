// Fits an image to the first frame of a video by the rules of Wan2.2's models. All functions are
// thread-safe.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "engine/media/rgb_image.h"

namespace wan {

// Returns the size of TI2V-5B's video for an image of `width` x `height`: sides are multiples of
// `multiple`, the area is at most `area` pixels, and the aspect ratio is near the image's. There
// are two candidates, one with the width rounded down first, one with the height; the nearer ratio
// wins, the second on a tie. Returns {0, 0} if a side would be below `multiple`. All arguments must
// be above 0.
ImageSize BestOutputSize(int width, int height, int64_t area, int multiple);

// Returns the size of I2V-A14B's video: the sides of a rectangle with the given area and the
// image's ratio, each rounded down to a multiple of `multiple`. Arguments and {0, 0} as for
// BestOutputSize.
ImageSize FloorOutputSize(int width, int height, int64_t area, int multiple);

// Returns whether FloorOutputSize gives `size` for an image of size `image` and some area. Never
// false for a size that it gives; rounding may admit a size that it just misses.
bool IsFloorOutputSize(ImageSize image, ImageSize size, int multiple);

// Cuts the largest centred part with the ratio of `size` out of the image, to within a pixel.
RgbImage CropToRatio(const RgbImage& image, ImageSize size);

// Resizes with the same bits as Pillow's 8-bit LANCZOS: antialiased when shrinking, in fixed point,
// width first, rounded to 8 bits after each pass. INVALID_ARGUMENT if a side of `size` is not from
// 1 to 65500, or if the image's pixels do not match its size.
absl::StatusOr<RgbImage> ResizeLanczos(const RgbImage& image, ImageSize size);

// Most pixels to which CoverAndCrop scales an image before it cuts out the middle.
inline constexpr int64_t kMostCoveringPixels = 64'000'000;

// Scales the image with ResizeLanczos by the smallest factor that covers `size`, then crops to the
// middle. If scaling would give more than kMostCoveringPixels or a side above 65500, it crops
// first. Returns the errors of ResizeLanczos.
absl::StatusOr<RgbImage> CoverAndCrop(const RgbImage& image, ImageSize size);

}  // namespace wan
