// Measures by how much the autoencoder's precisions differ from fp32 (wan_bench vae --compare).
#pragma once

#include "absl/status/status.h"
#include "benchmarks/session.h"
#include "engine/models/video_autoencoder.h"

namespace wan {

struct ComparedVideos {
  BenchShape shape;
  int clips = 0;  // number of clips with moving shapes like those of the demo model; 0: one clip of
                  // random latents
};

// Adds one row for each precision: the PSNR of decoded frames relative to fp32, the largest
// difference, and the relative error of encoded clips.
absl::Status ComparePrecisions(const VideoAutoencoder& vae, const ComparedVideos& videos,
                               Session& session);

}  // namespace wan
