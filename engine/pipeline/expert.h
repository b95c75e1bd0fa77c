// A transformer of a model, with its weights and LoRAs.
#pragma once

#include <c10/core/Device.h>

#include <memory>
#include <vector>

#include "engine/api/model_parts.h"
#include "engine/models/video_transformer.h"
#include "engine/weights/component_weights.h"
#include "engine/weights/lora_library.h"

namespace wan {

// An expert's weights on another device of a group; they never move.
struct ExpertReplica {
  c10::Device device = c10::kCPU;
  std::shared_ptr<ComponentWeights> weights;
  std::shared_ptr<LoraLibrary> loras = nullptr;  // null: none
};

struct Expert {
  ExpertRole role = ExpertRole::kOnly;  // StepPlan::expert
  ModelComponent component = ModelComponent::kTransformer;
  std::unique_ptr<VideoTransformer> transformer;
  std::shared_ptr<ComponentWeights> weights;
  std::shared_ptr<LoraLibrary> loras = nullptr;  // null: none
  // The device of `weights`: the model's, unless a group divides the experts.
  c10::Device device = c10::kCPU;
  // One for each other device on which `transformer` computes.
  std::vector<ExpertReplica> replicas = {};
};

}  // namespace wan
