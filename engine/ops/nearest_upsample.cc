#include "engine/ops/nearest_upsample.h"

#include <ATen/ops/empty.h>

#include "engine/ops/convolution.h"

namespace wan {

at::Tensor NearestUpsample(const at::Tensor& x, int64_t time_factor) {
  const int64_t channels = x.size(1) / time_factor;
  const int64_t frames = x.size(2);
  const int64_t height = x.size(3);
  const int64_t width = x.size(4);
  at::Tensor y = at::empty({1, channels, frames * time_factor, 2 * height, 2 * width},
                           x.options().memory_format(ConvolutionLayout(x.dim())));
  // One broadcasting copy writes every pixel of x to its four places.
  y.view({channels, frames, time_factor, height, 2, width, 2})
      .copy_(x.view({time_factor, channels, frames, height, 1, width, 1})
                 .permute({1, 2, 0, 3, 4, 5, 6}));
  return y;
}

}  // namespace wan
