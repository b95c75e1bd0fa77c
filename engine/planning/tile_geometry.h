// The geometry of decoding in tiles: how large a grid's tiles are, and which grids are tried.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/api/residency.h"
#include "engine/costs/latent_size.h"

namespace wan {

// Latents that neighbouring tiles share at least, on each axis.
inline constexpr int64_t kTileOverlap = 8;
// A side that was cut is not smaller, so that no more than two tiles share a latent.
inline constexpr int64_t kSmallestTile = 20;

// The size of the largest tile of a grid.
LatentSize TileOf(const LatentSize& latents, const TileGrid& grid);

// The grids to try one after the other where whole frames do not fit: ever smaller tiles.
std::vector<TileGrid> TileGrids(const LatentSize& latents);

}  // namespace wan
