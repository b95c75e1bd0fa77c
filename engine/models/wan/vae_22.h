// The autoencoder of ti2v-5b ("Wan2.2 VAE"): 16x16 pixels and 4 frames to one latent of 48
// channels.
//
// Upstream: wan/modules/vae2_2.py (Wan2_2_VAE). How it is laid out in memory, and why, is in
// docs/vae.md.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "engine/checkpoint/weight_source.h"
#include "engine/models/video_autoencoder.h"

namespace wan {

// Copies the weights to options.device; `weights` is not needed afterwards. A tensor that is
// missing or of another shape gives the weight loader's status, a config that is not of this
// architecture INVALID_ARGUMENT.
absl::StatusOr<std::unique_ptr<VideoAutoencoder>> LoadVae22(const WeightSource& weights,
                                                            const VaeConfig& config,
                                                            const VaeOptions& options);

}  // namespace wan
