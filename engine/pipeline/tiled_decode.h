// Decoding in tiles, for videos whose whole frames do not fit the device's memory.
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

// `count` tiles over `whole` latents: of equal size but for one latent, each sharing
// kTileOverlap latents with the next.
std::vector<TileSpan> CutIntoTiles(int64_t whole, int count);

// VideoAutoencoder::Decode tile by tile; where tiles overlap, one fades into the other. A grid of
// one is exactly Decode. Otherwise every tile is decoded from the first frame to the last before
// the sink gets any, and the video waits in host memory, 12 bytes a pixel.
//
// Not equal to the whole frame's decoding: the decoder looks further than the overlap.
absl::Status DecodeTiled(const VideoAutoencoder& vae, const at::Tensor& latents,
                         const TileGrid& grid, const VideoAutoencoder::FrameSink& sink,
                         const WorkGate& gate);

}  // namespace wan
