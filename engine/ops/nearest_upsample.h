// Enlarges frames by repeating pixels. If the channels of a frame hold two frames, they become
// consecutive frames.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace wan {

// Turns x [1, time_factor * C, T, H, W] into [1, C, T * time_factor, 2 H, 2 W] in
// ConvolutionLayout. Result frame t * time_factor + i has channels i * C to (i + 1) * C - 1 of
// frame t, and every pixel is repeated two by two.
at::Tensor NearestUpsample(const at::Tensor& x, int64_t time_factor);

}  // namespace wan
