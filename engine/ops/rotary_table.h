// The table of cosines and sines of the rotary position embedding over frames, rows and columns.
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <cstdint>

namespace wan {

// Returns a tensor [frames * rows * columns, head_dim] in fp32 on `device`. It has, for each token
// in the order frame, row, column, head_dim / 2 cosines and then as many sines, one per pair of
// neighbouring channels. 2 * (head_dim / 6) of the channels turn with the row, as many with the
// column, and the rest with the frame; pair i of n channels turns by position / 10000^(2i / n).
// Angles are computed in float64. head_dim must be even.
at::Tensor RotaryTable(const std::array<int64_t, 3>& grid, int64_t head_dim, at::Device device);

}  // namespace wan
