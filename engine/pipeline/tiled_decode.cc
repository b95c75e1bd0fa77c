#include "engine/pipeline/tiled_decode.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>

#include "engine/planning/tile_geometry.h"

namespace wan {
namespace {

// Returns the weights of a tile's pixels along one axis. The weights rise over the overlap with the
// previous tile and fall over the overlap with the next tile, so that the weights of all tiles add
// up to 1.
at::Tensor Fade(const std::vector<TileSpan>& tiles, size_t index, int64_t scale) {
  const TileSpan& tile = tiles[index];
  at::Tensor weights = at::ones({tile.size * scale}, at::kFloat);
  const auto ramp = [](int64_t pixels) {
    return (at::arange(pixels, at::kFloat) + 0.5) / static_cast<double>(pixels);
  };
  if (index > 0) {
    const TileSpan& before = tiles[index - 1];
    const int64_t shared = (before.begin + before.size - tile.begin) * scale;
    weights.narrow(0, 0, shared).mul_(ramp(shared));
  }
  if (index + 1 < tiles.size()) {
    const int64_t shared = (tile.begin + tile.size - tiles[index + 1].begin) * scale;
    weights.narrow(0, weights.size(0) - shared, shared).mul_(1 - ramp(shared));
  }
  return weights;
}

}  // namespace

std::vector<TileSpan> CutIntoTiles(int64_t whole, int count) {
  const int64_t size = TileOf({1, whole, 1}, {count, 1}).height;
  std::vector<TileSpan> tiles;
  for (int i = 0; i < count; ++i) {
    // Spread the tiles evenly, so that the last tile ends where the latents end.
    const int64_t begin = count == 1 ? 0 : i * (whole - size) / (count - 1);
    tiles.push_back({begin, size});
  }
  return tiles;
}

absl::Status DecodeTiled(const VideoAutoencoder& vae, const at::Tensor& latents,
                         const TileGrid& grid, const VideoAutoencoder::FrameSink& sink,
                         const VaePass& pass) {
  if (grid.IsWhole()) return vae.Decode(latents, sink, pass);
  const int64_t scale = vae.config().stride_spatial;
  const int64_t stride = vae.config().stride_temporal;
  const int64_t frames = 1 + (latents.size(1) - 1) * stride;
  at::Tensor video =
      at::zeros({3, frames, latents.size(2) * scale, latents.size(3) * scale}, at::kFloat);
  const std::vector<TileSpan> rows = CutIntoTiles(latents.size(2), grid.rows);
  const std::vector<TileSpan> columns = CutIntoTiles(latents.size(3), grid.columns);
  for (size_t row = 0; row < rows.size(); ++row) {
    for (size_t column = 0; column < columns.size(); ++column) {
      const TileSpan& y = rows[row];
      const TileSpan& x = columns[column];
      const at::Tensor weights = Fade(rows, row, scale).unsqueeze(1) * Fade(columns, column, scale);
      int64_t begin = 0;
      absl::Status status = vae.Decode(
          latents.narrow(2, y.begin, y.size).narrow(3, x.begin, x.size),
          [&](const at::Tensor& part) {
            video.narrow(1, begin, part.size(1))
                .narrow(2, y.begin * scale, y.size * scale)
                .narrow(3, x.begin * scale, x.size * scale)
                .add_(part.cpu() * weights);
            begin += part.size(1);
            return absl::OkStatus();
          },
          pass);
      if (!status.ok()) return status;
    }
  }
  for (int64_t begin = 0; begin < frames;) {
    const int64_t count = begin == 0 ? 1 : stride;
    if (absl::Status status = sink(video.narrow(1, begin, count).contiguous()); !status.ok())
      return status;
    begin += count;
  }
  return absl::OkStatus();
}

}  // namespace wan
