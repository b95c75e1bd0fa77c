// Decodes a video in tiles, if its whole frames do not fit into device memory.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "engine/api/residency.h"
#include "engine/device/work_gate.h"
#include "engine/models/video_autoencoder.h"

namespace wan {

// A tile's extent along one axis, in latents.
struct TileSpan {
  int64_t begin = 0;  // first latent
  int64_t size = 0;
};

// Returns `count` tiles of equal size that cover `whole` latents along one axis; neighbours share
// at least kTileOverlap latents.
std::vector<TileSpan> CutIntoTiles(int64_t whole, int count);

// Decodes as VideoAutoencoder::Decode does, but tile by tile, and blends the tiles where they
// overlap. If the grid has one tile, calls VideoAutoencoder::Decode. With more tiles, decodes every
// tile from the first to the last frame before the sink gets any frame. Until the sink gets frames,
// the video is in host memory and takes 12 bytes per pixel.
//
// The frames differ slightly from frames that are decoded whole, because the decoder's receptive
// field is larger than the overlap.
absl::Status DecodeTiled(const VideoAutoencoder& vae, const at::Tensor& latents,
                         const TileGrid& grid, const VideoAutoencoder::FrameSink& sink,
                         const VaePass& pass);

}  // namespace wan
