// Enlarges frames by repeating pixels. If the channels of a frame hold two frames, these become
// neighbours in time.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace wan {

// x [1, time_factor * C, T, H, W] -> [1, C, T * time_factor, 2 H, 2 W] in ConvolutionLayout:
// frame t * time_factor + i has channels i * C ... (i + 1) * C - 1 of frame t, every pixel becomes
// two by two.
at::Tensor NearestUpsample(const at::Tensor& x, int64_t time_factor);

}  // namespace wan
