// How far the autoencoder's precisions are from fp32 (wan_bench_vae --compare).
#pragma once

#include <ATen/core/Tensor.h>

#include "absl/status/status.h"
#include "benchmarks/harness.h"
#include "engine/models/video_autoencoder.h"

namespace wan {

struct ComparedVideos {
  FrameSize size;
  int64_t frames = 0;
  int clips = 0;  // of shapes that move, as the demo model's; 0: one of random latents
};

// Prints for each precision the PSNR of decoded frames to fp32's, their largest difference, and the
// relative error of encoded clips.
absl::Status ComparePrecisions(const VideoAutoencoder& vae, const ComparedVideos& videos,
                               at::Device device);

}  // namespace wan
