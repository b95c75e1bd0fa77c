// The two autoencoders of Wan2.2's models, which VaeConfig::kind tells apart:
//   "2.1"  The A14B models use it. It makes one latent of 16 channels from 8x8 pixels and 4 frames.
//   "2.2"  ti2v-5b uses it. It makes one latent of 48 channels from 16x16 pixels and 4 frames.
//
// Upstream calls them Wan2_1_VAE (wan/modules/vae2_1.py) and Wan2_2_VAE (vae2_2.py).
// docs/design/vae.md explains what they share and their memory layout.
#pragma once

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/checkpoint/weight_source.h"
#include "engine/models/video_autoencoder.h"

namespace wan {

// Copies the weights to options.device; `weights` is not needed afterwards. Returns the loader's
// status if a tensor is missing or has another shape, and INVALID_ARGUMENT if the config fits
// neither architecture.
absl::StatusOr<std::unique_ptr<VideoAutoencoder>> LoadWanVae(const WeightSource& weights,
                                                             const VaeConfig& config,
                                                             const VaeOptions& options);

// Combines autoencoders that LoadWanVae returned for one checkpoint on several devices. The result
// decodes on all devices together (vae_pipeline.h), with the same bits as on one device. Encoding
// runs on the first autoencoder's device, which also has the decoder's input and output. The
// weights of the other autoencoders must stay on their devices.
std::unique_ptr<VideoAutoencoder> MakeGroupVae(
    std::vector<std::unique_ptr<VideoAutoencoder>> ranks);

}  // namespace wan
