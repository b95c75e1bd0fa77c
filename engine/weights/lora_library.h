// Holds the LoRAs of one transformer in host memory, and makes the patch of a request's choice.
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

  // Returns the patch for `choice`; null if it changes nothing here, because its scales are 0 or
  // its names belong to other experts. The same choice as in the last call gives the same patch, so
  // that nothing is merged again. `weights` must be the same in every call.
  std::shared_ptr<const WeightPatch> PatchFor(const ComponentWeights& weights,
                                              std::span<const LoraScale> choice);

 private:
  std::map<std::string, std::shared_ptr<const LoraWeights>, std::less<>> loras_;
  std::vector<LoraScale> choice_;  // the last choice, without LoRAs that change nothing
  std::shared_ptr<const WeightPatch> patch_;
};

}  // namespace wan
