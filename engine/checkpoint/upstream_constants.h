// Constants that are in upstream's code but not in its checkpoints (Wan2.2 at commit 42bf4cf).
#pragma once

#include <cstdint>

#include "engine/checkpoint/model_config.h"

namespace wan {

inline constexpr int64_t kTextLength = 512;  // wan/configs/shared_config.py

// Stages, patches and latent statistics (16 or 48 channels) of a kind of VAE, from
// wan/modules/vae2_1.py and vae2_2.py. Leaves widths and strides at 0.
VaeConfig UpstreamVae(VaeKind kind);

// Derives both strides from patches and stages.
void SetStrides(VaeConfig& config);

}  // namespace wan
