// The parameter-free shortcut around a downsampling stage. The shortcut turns neighbouring frames,
// rows and columns into channels, and averages groups of these channels.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace wan {

// Turns x [1, C, T, H, W] into [1, out_channels, ceil(T / time_factor), H / space_factor, W /
// space_factor].
//
// The C * time_factor * space_factor^2 values of a cell are ordered by channel, then frame, row and
// column within the cell. out_channels divides their number; each output is the mean of consecutive
// values. If time_factor does not divide T, zero frames are put before the first frame.
at::Tensor AverageDown3d(const at::Tensor& x, int64_t out_channels, int64_t time_factor,
                         int64_t space_factor);

}  // namespace wan
