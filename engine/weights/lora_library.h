// Holds the LoRAs of one transformer in host memory, and combines the LoRAs that a request chooses
// into one patch.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/api/lora.h"
#include "engine/api/model_parts.h"
#include "engine/weights/component_weights.h"
#include "engine/weights/lora_patch.h"
#include "engine/weights/lora_weights.h"

namespace wan {

// Not thread-safe.
class LoraLibrary {
 public:
  void Add(const std::string& name, std::shared_ptr<const LoraWeights> weights);

  // Returns the patch for `choice` in the transformer of `expert`. Returns null if the choice
  // changes nothing in this transformer: all scales are 0, or the LoRAs belong to the other expert.
  // If the choice is the same as in the last call, returns the same patch, so that the weights are
  // not merged again. `weights` and `expert` must be the same in every call.
  std::shared_ptr<const WeightPatch> PatchFor(const ComponentWeights& weights, ExpertRole expert,
                                              std::span<const LoraScale> choice);

 private:
  std::map<std::string, std::shared_ptr<const LoraWeights>, std::less<>> loras_;
  // The last choice with the scales of this expert, without the LoRAs that change nothing.
  std::vector<std::pair<std::string, double>> choice_;
  std::shared_ptr<const WeightPatch> patch_;
};

}  // namespace wan
