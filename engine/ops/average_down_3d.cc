#include "engine/ops/average_down_3d.h"

#include <ATen/ops/constant_pad_nd.h>

namespace wan {

at::Tensor AverageDown3d(const at::Tensor& x, int64_t out_channels, int64_t time_factor,
                         int64_t space_factor) {
  const int64_t missing = (time_factor - x.size(2) % time_factor) % time_factor;
  const at::Tensor whole =
      missing == 0 ? x : at::constant_pad_nd(x, {0, 0, 0, 0, missing, 0}, /*value=*/0);
  const int64_t channels = x.size(1);
  const int64_t frames = whole.size(2) / time_factor;
  const int64_t height = x.size(3) / space_factor;
  const int64_t width = x.size(4) / space_factor;
  const int64_t values = channels * time_factor * space_factor * space_factor;
  return whole.view({channels, frames, time_factor, height, space_factor, width, space_factor})
      .permute({0, 2, 4, 6, 1, 3, 5})
      .reshape({out_channels, values / out_channels, frames, height, width})
      .mean(/*dim=*/1)
      .unsqueeze(0);
}

}  // namespace wan
