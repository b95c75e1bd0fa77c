// The autoencoders of Wan2.2's models, by VaeConfig::kind:
//   "2.1"  of the A14B models: 8x8 pixels and 4 frames to one latent of 16 channels
//   "2.2"  of ti2v-5b: 16x16 pixels and 4 frames to one latent of 48 channels
//
// Upstream's are Wan2_1_VAE (wan/modules/vae2_1.py) and Wan2_2_VAE (vae2_2.py). docs/design/vae.md
// says what they share, and how it is laid out in memory and why.
#pragma once

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/checkpoint/weight_source.h"
#include "engine/models/video_autoencoder.h"

namespace wan {

// Copies the weights to options.device; `weights` is not needed afterwards. Returns the weight
// loader's status if a tensor is missing or has another shape, and INVALID_ARGUMENT if the config
// belongs to neither architecture.
absl::StatusOr<std::unique_ptr<VideoAutoencoder>> LoadWanVae(const WeightSource& weights,
                                                             const VaeConfig& config,
                                                             const VaeOptions& options);

// Makes one autoencoder of several that LoadWanVae has returned for one checkpoint and several
// devices. It decodes together with all of them (vae_pipeline.h), with the bits of one, and does
// everything else with the first, on whose device it takes and gives tensors. The weights of the
// others must stay on their devices.
std::unique_ptr<VideoAutoencoder> MakeGroupVae(
    std::vector<std::unique_ptr<VideoAutoencoder>> ranks);

}  // namespace wan
