// The size of a video's latents, in the autoencoder's axes.
#pragma once

#include <cstdint>

namespace wan {

struct LatentSize {
  int64_t frames = 0;
  int64_t height = 0;
  int64_t width = 0;
};

}  // namespace wan
