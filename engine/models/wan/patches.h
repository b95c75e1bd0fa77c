// Converts latents to tokens, and tokens back to latents. All functions are pure.
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <cstdint>

namespace wan {

// The number of tokens along frames, rows and columns.
using TokenGrid = std::array<int64_t, 3>;

// Converts latents [B, C, F, H, W] to [B * tokens, C * patch], one row per token in the order
// frame, row, column. Within a row the order is channel, then position in the patch, as in a
// convolution's weight.
at::Tensor ToPatches(const at::Tensor& latents, const TokenGrid& grid,
                     const std::array<int64_t, 3>& patch_size);

// Converts rows [B * tokens, patch * C] to contiguous [B, C, F, H, W]. Within a row the order is
// position in the patch, then channel. ToPatches has the reverse order, because the model's head
// and its embedding differ.
at::Tensor FromPatches(const at::Tensor& rows, const TokenGrid& grid,
                       const std::array<int64_t, 3>& patch_size);

}  // namespace wan
