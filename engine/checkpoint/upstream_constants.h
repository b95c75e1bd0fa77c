// Constants that upstream's code has but its checkpoints do not (Wan2.2 at commit 42bf4cf).
#pragma once

#include <cstdint>

#include "engine/checkpoint/model_config.h"

namespace wan {

inline constexpr int64_t kTextLength = 512;  // This constant is in wan/configs/shared_config.py.

// Returns the stages, patches and latent statistics (16 or 48 channels) of one kind of VAE, from
// wan/modules/vae2_1.py and vae2_2.py. Widths and strides stay 0.
VaeConfig UpstreamVae(VaeKind kind);

// Computes both strides from patches and stages.
void SetStrides(VaeConfig& config);

}  // namespace wan
