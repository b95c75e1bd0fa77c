// Latents to tokens and back.
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <cstdint>

namespace wan {

// Frames, rows and columns of tokens.
using TokenGrid = std::array<int64_t, 3>;

// latents [B, C, F, H, W] -> [B * tokens, C * patch]: one row per token, in the order frame, row,
// column; in a row the order of a convolution's weight, channel first, then the place in the patch.
at::Tensor ToPatches(const at::Tensor& latents, const TokenGrid& grid,
                     const std::array<int64_t, 3>& patch_size);

// rows [B * tokens, patch * C] -> contiguous [B, C, F, H, W]. In a row the place in the patch comes
// first, then the channel: the head's order is not that of the embedding.
at::Tensor FromPatches(const at::Tensor& rows, const TokenGrid& grid,
                       const std::array<int64_t, 3>& patch_size);

}  // namespace wan
