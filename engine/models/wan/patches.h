// Converts latents to tokens and back. Pure functions.
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <cstdint>

namespace wan {

// The number of frames, rows and columns of tokens.
using TokenGrid = std::array<int64_t, 3>;

// Converts latents [B, C, F, H, W] to [B * tokens, C * patch]: one row for each token, in the order
// frame, row, column. A row has the order of a convolution's weight: channel, then place in the
// patch.
at::Tensor ToPatches(const at::Tensor& latents, const TokenGrid& grid,
                     const std::array<int64_t, 3>& patch_size);

// Converts rows [B * tokens, patch * C] to contiguous [B, C, F, H, W]. A row has the order place in
// the patch, then channel: the head's order differs from the embedding's.
at::Tensor FromPatches(const at::Tensor& rows, const TokenGrid& grid,
                       const std::array<int64_t, 3>& patch_size);

}  // namespace wan
