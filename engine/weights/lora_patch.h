// LoRAs as a change of a component's weights: W + sum of scale * factor * (up down), the sum in
// fp32 and rounded once.
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

// Null if nothing changes: no LoRAs, or all of scale 0. The factors travel to the device when a
// group is patched and do not stay there. `weights` is the transformer's that the LoRAs were read
// for; the patch does not hold it.
std::shared_ptr<const WeightPatch> MakeLoraPatch(const ComponentWeights& weights,
                                                 std::span<const ScaledLora> loras);

}  // namespace wan
