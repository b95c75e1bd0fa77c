// The autoencoders of Wan2.2's models, by VaeConfig::kind:
//   "2.1"  of the A14B models: 8x8 pixels and 4 frames to one latent of 16 channels
//   "2.2"  of ti2v-5b: 16x16 pixels and 4 frames to one latent of 48 channels
//
// Upstream: wan/modules/vae2_1.py (Wan2_1_VAE), vae2_2.py (Wan2_2_VAE). What they share, how it is
// laid out in memory, and why, is in docs/vae.md.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "engine/checkpoint/weight_source.h"
#include "engine/models/video_autoencoder.h"

namespace wan {

// Copies the weights to options.device; `weights` is not needed afterwards. A tensor that is
// missing or of another shape gives the weight loader's status, a config that is of neither
// architecture INVALID_ARGUMENT.
absl::StatusOr<std::unique_ptr<VideoAutoencoder>> LoadWanVae(const WeightSource& weights,
                                                             const VaeConfig& config,
                                                             const VaeOptions& options);

}  // namespace wan
