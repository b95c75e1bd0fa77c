#include "engine/weights/lora_library.h"

#include <utility>

namespace wan {

void LoraLibrary::Add(const std::string& name, std::shared_ptr<const LoraWeights> weights) {
  loras_.emplace(name, std::move(weights));
}

std::shared_ptr<const WeightPatch> LoraLibrary::PatchFor(const ComponentWeights& weights,
                                                         ExpertRole expert,
                                                         std::span<const LoraScale> choice) {
  std::vector<std::pair<std::string, double>> changing;
  std::vector<ScaledLora> scaled;
  for (const LoraScale& entry : choice) {
    const auto found = loras_.find(entry.name);
    const double scale = entry.For(expert);
    if (found == loras_.end() || scale == 0) continue;
    changing.emplace_back(entry.name, scale);
    scaled.push_back({found->second, scale});
  }
  if (changing != choice_) {
    patch_ = MakeLoraPatch(weights, scaled);
    choice_ = std::move(changing);
  }
  return patch_;
}

}  // namespace wan
