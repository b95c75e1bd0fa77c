// Merges LoRAs into a component's weights: W becomes W + the sum of each LoRA's change
// (lora_change.h) times its scale. The sum is computed in fp32 and rounded once.
#pragma once

#include <memory>
#include <span>

#include "engine/weights/component_weights.h"
#include "engine/weights/lora_weights.h"
#include "engine/weights/weight_patch.h"

namespace wan {

struct ScaledLora {
  std::shared_ptr<const LoraWeights> weights;
  double scale = 1;
};

// Returns the patch, or null if there are no LoRAs or all their scales are 0. The LoRAs' matrices
// are copied to the device each time a group is patched, and do not stay there. `weights` must
// belong to the transformer for which the LoRAs were read; the patch keeps no reference to it.
std::shared_ptr<const WeightPatch> MakeLoraPatch(const ComponentWeights& weights,
                                                 std::span<const ScaledLora> loras);

}  // namespace wan
