// Decodes in tiles, for videos whose whole frames do not fit into device memory.
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

// Returns `count` equal tiles that cover `whole` latents; neighbours share at least kTileOverlap
// latents.
std::vector<TileSpan> CutIntoTiles(int64_t whole, int count);

// Decodes like VideoAutoencoder::Decode, but tile by tile, with overlaps blended. A grid of one
// tile is Decode itself. With more tiles, each is decoded from first to last frame before the sink
// gets any frame, and the video waits in host memory at 12 bytes per pixel.
//
// The result differs slightly from whole frames, because the decoder's receptive field is larger
// than the overlap.
absl::Status DecodeTiled(const VideoAutoencoder& vae, const at::Tensor& latents,
                         const TileGrid& grid, const VideoAutoencoder::FrameSink& sink,
                         const VaePass& pass);

}  // namespace wan
