// Enlarges frames by repeating pixels. If a frame's channels hold two frames, these become
// consecutive.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace wan {

// x [1, time_factor * C, T, H, W] -> [1, C, T * time_factor, 2 H, 2 W] in ConvolutionLayout: result
// frame t * time_factor + i has channels i * C ... (i + 1) * C - 1 of frame t, with every pixel
// repeated two by two.
at::Tensor NearestUpsample(const at::Tensor& x, int64_t time_factor);

}  // namespace wan
