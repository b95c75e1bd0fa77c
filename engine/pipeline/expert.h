// One of a model's transformers, with its weights and LoRAs.
#pragma once

#include <memory>

#include "engine/api/model_parts.h"
#include "engine/models/video_transformer.h"
#include "engine/weights/component_weights.h"
#include "engine/weights/lora_library.h"

namespace wan {

struct Expert {
  ExpertRole role = ExpertRole::kOnly;  // StepPlan::expert
  ModelComponent component = ModelComponent::kTransformer;
  std::unique_ptr<VideoTransformer> transformer;
  std::shared_ptr<ComponentWeights> weights;
  std::shared_ptr<LoraLibrary> loras = nullptr;  // null: none
};

}  // namespace wan
