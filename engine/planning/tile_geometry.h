// The geometry of decoding in tiles: tile sizes and the grids to try. Sizes are in latents. All
// functions are pure.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/api/residency.h"
#include "engine/costs/latent_size.h"

namespace wan {

// Neighbouring tiles overlap by at least this many latents on each axis.
inline constexpr int64_t kTileOverlap = 8;
// A tile has at least this many latents along an axis that is cut, so that at most two tiles
// overlap anywhere.
inline constexpr int64_t kSmallestTile = 20;

// Returns the size of the largest tile of a grid.
LatentSize TileOf(const LatentSize& latents, const TileGrid& grid);

// Returns the grids to try, in order, if whole frames do not fit; their tiles get smaller and
// smaller.
std::vector<TileGrid> TileGrids(const LatentSize& latents);

}  // namespace wan
