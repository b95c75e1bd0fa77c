// Decodes in tiles, for videos whose whole frames do not fit into the device's memory.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "engine/api/residency.h"
#include "engine/device/work_gate.h"
#include "engine/models/video_autoencoder.h"

namespace wan {

// One axis of a tile.
struct TileSpan {
  int64_t begin = 0;  // in latents
  int64_t size = 0;
};

// Returns `count` tiles of equal size that cover `whole` latents. Neighbours share at least
// kTileOverlap latents.
std::vector<TileSpan> CutIntoTiles(int64_t whole, int count);

// Does what VideoAutoencoder::Decode does, tile by tile; where tiles overlap, one fades into the
// other. A grid of one tile is exactly Decode. With more, every tile is decoded from the first
// frame to the last before the sink gets any frame, and the video waits in host memory with 12
// bytes for each pixel.
//
// The result differs slightly from that of whole frames, because the decoder looks further than the
// overlap.
absl::Status DecodeTiled(const VideoAutoencoder& vae, const at::Tensor& latents,
                         const TileGrid& grid, const VideoAutoencoder::FrameSink& sink,
                         const VaePass& pass);

}  // namespace wan
