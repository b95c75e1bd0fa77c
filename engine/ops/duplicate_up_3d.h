// The parameter-free shortcut around an upsampling stage. The shortcut turns channels into
// neighbouring frames, rows and columns. If there are too few channels, each is repeated.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace wan {

// Returns whether AddDuplicateUp3d supports these channel counts. A cell of the result needs
// out_channels * time_factor * space_factor^2 values. The in_channels values, each repeated r
// times, must give exactly this number. r is 1, or the product of the last one, two or three of the
// factors time, space, space.
bool SupportsDuplicateUp3d(int64_t in_channels, int64_t out_channels, int64_t time_factor,
                           int64_t space_factor);

// Adds x [1, in, T, H, W], duplicated to the size of y [1, out, T * time_factor, H * space_factor,
// W * space_factor], to y. Value i of a cell of y gets channel i / r of x (r as above); values are
// ordered by channel, then frame, row and column within the cell.
//
// If T is 1, y may lack the first time_factor - 1 frames of its cell, as in the first chunk of a
// video.
void AddDuplicateUp3d(at::Tensor& y, const at::Tensor& x, int64_t time_factor,
                      int64_t space_factor);

}  // namespace wan
