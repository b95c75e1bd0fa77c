#include "engine/ops/duplicate_up_3d.h"

#include <array>
#include <optional>

namespace wan {
namespace {

// Returns how x's channels are divided between the frames, rows and columns of a cell: for each
// axis its factor, or 1 if values are repeated along the axis.
std::optional<std::array<int64_t, 3>> SplitOfChannels(int64_t in_channels, int64_t out_channels,
                                                      int64_t time_factor, int64_t space_factor) {
  std::array<int64_t, 3> split{time_factor, space_factor, space_factor};
  const int64_t values = out_channels * time_factor * space_factor * space_factor;
  if (in_channels <= 0 || values % in_channels != 0) return std::nullopt;
  int64_t repeats = values / in_channels;
  for (int axis = 2; axis >= 0 && repeats > 1; --axis) {
    if (repeats % split[axis] != 0) return std::nullopt;
    repeats /= split[axis];
    split[axis] = 1;
  }
  if (repeats != 1) return std::nullopt;
  return split;
}

}  // namespace

bool SupportsDuplicateUp3d(int64_t in_channels, int64_t out_channels, int64_t time_factor,
                           int64_t space_factor) {
  return SplitOfChannels(in_channels, out_channels, time_factor, space_factor).has_value();
}

void AddDuplicateUp3d(at::Tensor& y, const at::Tensor& x, int64_t time_factor,
                      int64_t space_factor) {
  const int64_t channels = y.size(1);
  const int64_t frames = x.size(2);
  const int64_t height = x.size(3);
  const int64_t width = x.size(4);
  const std::array<int64_t, 3> split =
      SplitOfChannels(x.size(1), channels, time_factor, space_factor).value();
  at::Tensor source = x.view({channels, split[0], split[1], split[2], frames, height, width})
                          .permute({0, 4, 1, 5, 2, 6, 3});
  // The number of frames of y for each frame of x; 1 if y has only the last frame of a cell.
  const int64_t made = y.size(2) / frames;
  if (split[0] > made) source = source.narrow(2, split[0] - made, made);
  // A broadcast repeats the values, so no temporary tensor of y's size is made.
  y.view({channels, frames, made, height, space_factor, width, space_factor}).add_(source);
}

}  // namespace wan
