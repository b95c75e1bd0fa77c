#include "engine/media/image_resize.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numbers>
#include <vector>

#include "absl/strings/str_cat.h"

namespace wan {
namespace {

constexpr double kLanczosRadius = 3;
// Weights are integers with this many fractional bits. An int then has room for the 8 bits of a
// pixel and for 2 bits of overshoot.
constexpr int kWeightBits = 32 - 8 - 2;

double Sinc(double x) {
  if (x == 0) return 1;
  x *= std::numbers::pi;
  return std::sin(x) / x;
}

double Lanczos(double x) {
  return x >= -kLanczosRadius && x < kLanczosRadius ? Sinc(x) * Sinc(x / kLanczosRadius) : 0;
}

// The inputs of one output position are [first, first + weights.size()).
struct Tap {
  int first = 0;
  std::vector<int> weights;  // fixed-point numbers whose sum is 1
};

Tap MakeTap(double center, double radius, double stretch, int in_size) {
  const int first = std::max(static_cast<int>(std::floor(center - radius + 0.5)), 0);
  const int last = std::min(static_cast<int>(std::floor(center + radius + 0.5)), in_size);
  std::vector<double> weights;
  double sum = 0;
  for (int i = first; i < last; ++i) {
    weights.push_back(Lanczos((i - center + 0.5) * (1 / stretch)));
    sum += weights.back();
  }
  Tap tap{first, {}};
  for (double weight : weights) {
    if (sum != 0) weight /= sum;
    // Rounds to the nearest integer, and halves away from zero.
    tap.weights.push_back(
        static_cast<int>((weight < 0 ? -0.5 : 0.5) + weight * (1 << kWeightBits)));
  }
  return tap;
}

std::vector<Tap> MakeTaps(int in_size, int out_size) {
  const double scale = static_cast<double>(in_size) / out_size;
  // When the image shrinks, the kernel is widened, so that no input is skipped.
  const double stretch = std::max(scale, 1.0);
  std::vector<Tap> taps;
  taps.reserve(static_cast<size_t>(out_size));
  for (int i = 0; i < out_size; ++i) {
    taps.push_back(MakeTap((i + 0.5) * scale, kLanczosRadius * stretch, stretch, in_size));
  }
  return taps;
}

// Computes, for each channel, the weighted sum of pixels that are `stride` bytes apart.
void ApplyTap(const Tap& tap, const uint8_t* in, size_t stride, uint8_t* out) {
  constexpr int kHalf = 1 << (kWeightBits - 1);
  int sums[3] = {kHalf, kHalf, kHalf};
  const uint8_t* pixel = in + static_cast<size_t>(tap.first) * stride;
  for (const int weight : tap.weights) {
    for (int channel = 0; channel < 3; ++channel) sums[channel] += pixel[channel] * weight;
    pixel += stride;
  }
  for (int channel = 0; channel < 3; ++channel) {
    out[channel] = static_cast<uint8_t>(std::clamp(sums[channel] >> kWeightBits, 0, 255));
  }
}

RgbImage MakeImage(int width, int height) {
  return {width, height,
          std::vector<uint8_t>(static_cast<size_t>(width) * static_cast<size_t>(height) * 3)};
}

RgbImage ResizeWidth(const RgbImage& image, int width) {
  const std::vector<Tap> taps = MakeTaps(image.width, width);
  RgbImage result = MakeImage(width, image.height);
  uint8_t* out = result.pixels.data();
  for (int y = 0; y < image.height; ++y) {
    const uint8_t* row = image.pixels.data() + static_cast<size_t>(y) * image.width * 3;
    for (const Tap& tap : taps) {
      ApplyTap(tap, row, 3, out);
      out += 3;
    }
  }
  return result;
}

RgbImage ResizeHeight(const RgbImage& image, int height) {
  const std::vector<Tap> taps = MakeTaps(image.height, height);
  RgbImage result = MakeImage(image.width, height);
  const size_t stride = static_cast<size_t>(image.width) * 3;
  uint8_t* out = result.pixels.data();
  for (const Tap& tap : taps) {
    for (int x = 0; x < image.width; ++x) {
      ApplyTap(tap, image.pixels.data() + static_cast<size_t>(x) * 3, stride, out);
      out += 3;
    }
  }
  return result;
}

absl::Status Check(const RgbImage& image, ImageSize size) {
  if (absl::Status status = CheckPixels(image.pixels, image.width, image.height); !status.ok()) {
    return status;
  }
  if (size.width >= 1 && size.width <= kMaxImageSide && size.height >= 1 &&
      size.height <= kMaxImageSide) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat("the requested size is ", size.width, "x",
                                                 size.height, "; sides must be from 1 to ",
                                                 kMaxImageSide));
}

// Rounds `value` down to a multiple of `multiple`.
int FloorToMultiple(double value, int multiple) {
  return static_cast<int>(value - std::fmod(value, multiple));
}

// Returns the larger of the two aspect ratios divided by the smaller.
double RatioGap(double ratio, ImageSize size) {
  const double other = static_cast<double>(size.width) / size.height;
  return std::max(ratio / other, other / ratio);
}

RgbImage CropMiddle(const RgbImage& image, ImageSize size) {
  const int left = (image.width - size.width) / 2;
  const int top = (image.height - size.height) / 2;
  RgbImage result = MakeImage(size.width, size.height);
  const size_t row_bytes = static_cast<size_t>(size.width) * 3;
  for (int y = 0; y < size.height; ++y) {
    const size_t from = (static_cast<size_t>(top + y) * image.width + left) * 3;
    std::copy_n(image.pixels.begin() + static_cast<ptrdiff_t>(from), row_bytes,
                result.pixels.begin() + static_cast<ptrdiff_t>(y * row_bytes));
  }
  return result;
}

}  // namespace

ImageSize BestOutputSize(int width, int height, int64_t area, int multiple) {
  const double ratio = static_cast<double>(width) / height;
  const double pixels = static_cast<double>(area);
  const double ideal_width = std::pow(pixels * ratio, 0.5);
  const double ideal_height = pixels / ideal_width;
  if (ideal_width < multiple || ideal_height < multiple) return {0, 0};

  ImageSize by_width;
  by_width.width = FloorToMultiple(ideal_width, multiple);
  by_width.height = FloorToMultiple(pixels / by_width.width, multiple);
  ImageSize by_height;
  by_height.height = FloorToMultiple(ideal_height, multiple);
  by_height.width = FloorToMultiple(pixels / by_height.height, multiple);
  return RatioGap(ratio, by_width) < RatioGap(ratio, by_height) ? by_width : by_height;
}

ImageSize FloorOutputSize(int width, int height, int64_t area, int multiple) {
  const double ratio = static_cast<double>(height) / width;
  const double pixels = static_cast<double>(area);
  const ImageSize size = {FloorToMultiple(std::sqrt(pixels / ratio), multiple),
                          FloorToMultiple(std::sqrt(pixels * ratio), multiple)};
  return size.width > 0 && size.height > 0 ? size : ImageSize{0, 0};
}

bool IsFloorOutputSize(ImageSize image, ImageSize size, int multiple) {
  // FloorOutputSize rounds down two sides that have the image's ratio. So before rounding each side
  // was longer by less than `multiple`.
  const auto least_height = int64_t{size.width} * image.height;
  const auto most_height = (int64_t{size.width} + multiple) * image.height;
  return int64_t{size.height} * image.width <= most_height &&
         least_height <= (int64_t{size.height} + multiple) * image.width;
}

RgbImage CropToRatio(const RgbImage& image, ImageSize size) {
  const double ratio = static_cast<double>(size.width) / size.height;
  const int width = static_cast<int>(std::nearbyint(image.height * ratio));
  const int height = static_cast<int>(std::nearbyint(image.width / ratio));
  return width < image.width
             ? CropMiddle(image, {std::max(width, 1), image.height})
             : CropMiddle(image, {image.width, std::clamp(height, 1, image.height)});
}

absl::StatusOr<RgbImage> ResizeLanczos(const RgbImage& image, ImageSize size) {
  if (absl::Status status = Check(image, size); !status.ok()) return status;
  // Skip a side whose length does not change: its weights would all be 0 or 1.
  RgbImage wide = image.width == size.width ? image : ResizeWidth(image, size.width);
  if (wide.height == size.height) return wide;
  return ResizeHeight(wide, size.height);
}

absl::StatusOr<RgbImage> CoverAndCrop(const RgbImage& image, ImageSize size) {
  if (absl::Status status = Check(image, size); !status.ok()) return status;
  const double scale = std::max(static_cast<double>(size.width) / image.width,
                                static_cast<double>(size.height) / image.height);
  // nearbyint rounds halves to even, as Python's round() does.
  const ImageSize covering = {static_cast<int>(std::nearbyint(image.width * scale)),
                              static_cast<int>(std::nearbyint(image.height * scale))};
  if (covering.width > kMaxImageSide || covering.height > kMaxImageSide ||
      int64_t{covering.width} * covering.height > kMostCoveringPixels) {
    return ResizeLanczos(CropToRatio(image, size), size);
  }
  absl::StatusOr<RgbImage> resized = ResizeLanczos(image, covering);
  if (!resized.ok()) return resized.status();
  return CropMiddle(*resized, size);
}

}  // namespace wan
