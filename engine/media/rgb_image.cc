#include "engine/media/rgb_image.h"

#include "absl/strings/str_cat.h"

namespace wan {

absl::Status CheckPixels(std::span<const uint8_t> rgb24, int width, int height) {
  if (width < 1 || width > kMaxImageSide || height < 1 || height > kMaxImageSide) {
    return absl::InvalidArgumentError(absl::StrCat("the image is ", width, "x", height,
                                                   "; sides must be from 1 to ", kMaxImageSide));
  }
  const size_t expected = static_cast<size_t>(width) * static_cast<size_t>(height) * 3;
  if (rgb24.size() != expected) {
    return absl::InvalidArgumentError(absl::StrCat("the image is ", width, "x", height, " and has ",
                                                   rgb24.size(), " bytes; must have ", expected));
  }
  return absl::OkStatus();
}

}  // namespace wan
