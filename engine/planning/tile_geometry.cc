#include "engine/planning/tile_geometry.h"

namespace wan {

LatentSize TileOf(const LatentSize& latents, const TileGrid& grid) {
  const auto side = [](int64_t whole, int64_t count) {
    return count == 1 ? whole : (whole + (count - 1) * kTileOverlap + count - 1) / count;
  };
  return {latents.frames, side(latents.height, grid.rows), side(latents.width, grid.columns)};
}

std::vector<TileGrid> TileGrids(const LatentSize& latents) {
  std::vector<TileGrid> grids;
  TileGrid grid;
  while (true) {
    // Make one more cut through the tile's longer side.
    const LatentSize tile = TileOf(latents, grid);
    const bool is_wide = tile.width >= tile.height;
    (is_wide ? grid.columns : grid.rows) += 1;
    const LatentSize cut = TileOf(latents, grid);
    if ((is_wide ? cut.width : cut.height) < kSmallestTile) return grids;
    grids.push_back(grid);
  }
}

}  // namespace wan
