// Holds the LoRAs of one transformer in host memory, and combines those that a request chooses into
// one patch.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/api/lora.h"
#include "engine/weights/component_weights.h"
#include "engine/weights/lora_patch.h"
#include "engine/weights/lora_weights.h"

namespace wan {

// Not thread-safe.
class LoraLibrary {
 public:
  void Add(const std::string& name, std::shared_ptr<const LoraWeights> weights);

  // Returns the patch for `choice`. Returns null if the choice changes nothing in this transformer:
  // all scales are 0, or the LoRAs belong to the other expert. If the choice is the same as in the
  // last call, returns the same patch, so that the weights are not merged again. `weights` must be
  // the same in every call.
  std::shared_ptr<const WeightPatch> PatchFor(const ComponentWeights& weights,
                                              std::span<const LoraScale> choice);

 private:
  std::map<std::string, std::shared_ptr<const LoraWeights>, std::less<>> loras_;
  std::vector<LoraScale> choice_;  // the last choice, without the LoRAs that change nothing
  std::shared_ptr<const WeightPatch> patch_;
};

}  // namespace wan
