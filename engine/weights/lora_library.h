// The LoRAs of one transformer by name, in host memory, and the patch that a request's choice is.
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

// One thread at a time.
class LoraLibrary {
 public:
  void Add(const std::string& name, std::shared_ptr<const LoraWeights> weights);

  // Null if the choice changes nothing here: names that other experts alone have, scales of 0.
  // While the choice stays the same, so does the patch, and nothing is merged again. `weights` are
  // the same in every call.
  std::shared_ptr<const WeightPatch> PatchFor(const ComponentWeights& weights,
                                              std::span<const LoraScale> choice);

 private:
  std::map<std::string, std::shared_ptr<const LoraWeights>, std::less<>> loras_;
  std::vector<LoraScale> choice_;  // the last one, without what changes nothing
  std::shared_ptr<const WeightPatch> patch_;
};

}  // namespace wan
