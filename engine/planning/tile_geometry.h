// The geometry of decoding in tiles: how large the tiles of a grid are, and which grids are tried.
// Sizes are in latents. All functions are pure.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/api/residency.h"
#include "engine/costs/latent_size.h"

namespace wan {

// Neighbouring tiles share at least this many latents on each axis.
inline constexpr int64_t kTileOverlap = 8;
// A side that is cut has at least this many latents, so that at most two tiles share a latent.
inline constexpr int64_t kSmallestTile = 20;

// Returns the size of the largest tile of a grid.
LatentSize TileOf(const LatentSize& latents, const TileGrid& grid);

// Returns the grids to try one after the other if whole frames do not fit, with ever smaller tiles.
std::vector<TileGrid> TileGrids(const LatentSize& latents);

}  // namespace wan
