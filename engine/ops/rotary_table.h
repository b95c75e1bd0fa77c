// Makes the table of cosines and sines for the rotary position embedding over frames, rows and
// columns.
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <cstdint>

namespace wan {

// Returns a tensor [frames * rows * columns, head_dim] in fp32 on `device`. For each token (in the
// order frame, row, column) the tensor has head_dim / 2 cosines, then as many sines, one for each
// pair of neighbouring channels. 2 * (head_dim / 6) channels rotate with the row, as many with the
// column, and all other channels with the frame. The angle of pair i of n channels is position /
// 10000^(2i / n). Angles are computed in float64. head_dim must be even.
at::Tensor RotaryTable(const std::array<int64_t, 3>& grid, int64_t head_dim, at::Device device);

}  // namespace wan
