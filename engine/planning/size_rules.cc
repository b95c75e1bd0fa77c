#include "engine/planning/size_rules.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "engine/media/image_resize.h"

namespace wan {

std::string NearestIn(const ValueGrid& grid, int64_t value) {
  const int64_t last = grid.first + (grid.last - grid.first) / grid.step * grid.step;
  if (value < grid.first) return absl::StrCat(grid.first);
  if (value > last) return absl::StrCat(last);
  const int64_t below = value - (value - grid.first) % grid.step;
  return absl::StrCat(below, " or ", below + grid.step);
}

ImageSize SizeOfImageVideo(ImageRole role, ImageSize image, int64_t area, int stride) {
  const auto rule = role == ImageRole::kCondition ? FloorOutputSize : BestOutputSize;
  return rule(image.width, image.height, area, stride);
}

ImageSize CutForVideo(ImageRole role, ImageSize image, int64_t area, int stride, int max_side) {
  const bool is_wide = image.width > image.height;
  const auto [shorter, longer] = std::minmax(image.width, image.height);
  for (int cut = longer; cut >= shorter; --cut) {
    const ImageSize rest = is_wide ? ImageSize{cut, shorter} : ImageSize{shorter, cut};
    const ImageSize video = SizeOfImageVideo(role, rest, area, stride);
    if (std::min(video.width, video.height) >= stride &&
        std::max(video.width, video.height) <= max_side) {
      return rest;
    }
  }
  return {0, 0};
}

}  // namespace wan
