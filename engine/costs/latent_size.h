// The size of a video's latents as the autoencoder counts it: frames, rows and columns.
#pragma once

#include <cstdint>

namespace wan {

struct LatentSize {
  int64_t frames = 0;
  int64_t height = 0;
  int64_t width = 0;
};

}  // namespace wan
