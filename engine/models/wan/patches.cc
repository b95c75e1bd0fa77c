#include "engine/models/wan/patches.h"

namespace wan {

at::Tensor ToPatches(const at::Tensor& latents, const TokenGrid& grid,
                     const std::array<int64_t, 3>& patch_size) {
  const int64_t batch = latents.size(0);
  const int64_t channels = latents.size(1);
  const auto [frames, rows, columns] = grid;
  const auto [p, q, r] = patch_size;
  return latents.reshape({batch, channels, frames, p, rows, q, columns, r})
      .permute({0, 2, 4, 6, 1, 3, 5, 7})
      .reshape({batch * frames * rows * columns, channels * p * q * r});
}

at::Tensor FromPatches(const at::Tensor& rows, const TokenGrid& grid,
                       const std::array<int64_t, 3>& patch_size) {
  const auto [frames, height, columns] = grid;
  const auto [p, q, r] = patch_size;
  const int64_t batch = rows.size(0) / (frames * height * columns);
  const int64_t channels = rows.size(1) / (p * q * r);
  return rows.view({batch, frames, height, columns, p, q, r, channels})
      .permute({0, 7, 1, 4, 2, 5, 3, 6})
      .reshape({batch, channels, frames * p, height * q, columns * r});
}

}  // namespace wan
