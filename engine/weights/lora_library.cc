#include "engine/weights/lora_library.h"

#include <utility>

namespace wan {

void LoraLibrary::Add(const std::string& name, std::shared_ptr<const LoraWeights> weights) {
  loras_.emplace(name, std::move(weights));
}

std::shared_ptr<const WeightPatch> LoraLibrary::PatchFor(const ComponentWeights& weights,
                                                         std::span<const LoraScale> choice) {
  std::vector<LoraScale> changing;
  std::vector<ScaledLora> scaled;
  for (const LoraScale& entry : choice) {
    const auto found = loras_.find(entry.name);
    if (found == loras_.end() || entry.scale == 0) continue;
    changing.push_back(entry);
    scaled.push_back({found->second, entry.scale});
  }
  if (changing != choice_) {
    patch_ = MakeLoraPatch(weights, scaled);
    choice_ = std::move(changing);
  }
  return patch_;
}

}  // namespace wan
