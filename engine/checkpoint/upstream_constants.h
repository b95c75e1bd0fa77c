// Constants that upstream keeps in its code and not in its checkpoints (Wan2.2 at commit 42bf4cf).
#pragma once

#include <cstdint>

#include "engine/checkpoint/model_config.h"

namespace wan {

inline constexpr int64_t kTextLength = 512;  // wan/configs/shared_config.py

// Constants of a kind of VAE (wan/modules/vae2_1.py, vae2_2.py): stages, patches, and the
// statistics of its 16 or 48 latent channels. Widths and strides are left at 0.
VaeConfig UpstreamVae(VaeKind kind);

// Sets both strides, which follow from patches and stages.
void SetStrides(VaeConfig& config);

}  // namespace wan
