// Measures the difference of the autoencoder's precisions to fp32 (wan_bench vae --compare).
#pragma once

#include "absl/status/status.h"
#include "benchmarks/session.h"
#include "engine/models/video_autoencoder.h"

namespace wan {

struct ComparedVideos {
  BenchShape shape;
  int clips = 0;  // clips of moving shapes, like the demo model's; 0: one clip of random latents
};

// Adds a row for each precision: the PSNR of decoded frames to fp32's, their largest difference,
// and the relative error of encoded clips.
absl::Status ComparePrecisions(const VideoAutoencoder& vae, const ComparedVideos& videos,
                               Session& session);

}  // namespace wan
