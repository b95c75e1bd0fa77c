// The geometry of decoding in tiles: the sizes of tiles, and the grids to try. All sizes are in
// latents. All functions are pure.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/api/residency.h"
#include "engine/costs/latent_size.h"

namespace wan {

// Neighbouring tiles overlap by at least this many latents on each axis.
inline constexpr int64_t kTileOverlap = 8;
// Along an axis that is cut, a tile has at least this many latents, so that at most two tiles
// overlap anywhere.
inline constexpr int64_t kSmallestTile = 20;

// Returns the size of the largest tile in a grid.
LatentSize TileOf(const LatentSize& latents, const TileGrid& grid);

// Returns the grids to try, in this order, if whole frames do not fit. Each grid has smaller tiles
// than the previous grid.
std::vector<TileGrid> TileGrids(const LatentSize& latents);

}  // namespace wan
