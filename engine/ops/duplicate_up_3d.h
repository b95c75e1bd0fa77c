// The parameter-free shortcut around an upsampling stage. It turns channels into neighbouring
// frames, rows and columns, and repeats them if there are too few.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace wan {

// Returns whether AddDuplicateUp3d supports the channel counts: in_channels values, each repeated r
// times, must make the out_channels * time_factor * space_factor^2 values of a cell, where r is 1
// or the product of the last of these three factors.
bool SupportsDuplicateUp3d(int64_t in_channels, int64_t out_channels, int64_t time_factor,
                           int64_t space_factor);

// Adds x [1, in, T, H, W], duplicated to the size of y [1, out, T * time_factor, H * space_factor,
// W * space_factor], to y. Value i of a cell of y (ordered by channel, then frame, row and column
// within the cell) gets channel i / r of x.
//
// If T is 1, y may lack the first time_factor - 1 frames, as the first chunk of a video does.
void AddDuplicateUp3d(at::Tensor& y, const at::Tensor& x, int64_t time_factor,
                      int64_t space_factor);

}  // namespace wan
