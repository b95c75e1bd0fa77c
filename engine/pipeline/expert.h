// One transformer of a model (an expert), with its weights and LoRAs.
#pragma once

#include <c10/core/Device.h>

#include <memory>
#include <vector>

#include "engine/api/model_parts.h"
#include "engine/models/video_transformer.h"
#include "engine/weights/component_weights.h"
#include "engine/weights/lora_library.h"

namespace wan {

// An expert's weights on another device of the group; they never move.
struct ExpertReplica {
  c10::Device device = c10::kCPU;
  std::shared_ptr<ComponentWeights> weights;
  std::shared_ptr<LoraLibrary> loras = nullptr;  // null: there are no LoRAs
};

struct Expert {
  ExpertRole role = ExpertRole::kOnly;  // the expert that steps name by StepPlan::expert
  ModelComponent component = ModelComponent::kTransformer;
  std::shared_ptr<VideoTransformer> transformer;
  std::shared_ptr<ComponentWeights> weights;
  std::shared_ptr<LoraLibrary> loras = nullptr;  // null: there are no LoRAs
  // The device of `weights`. This is the model's device, unless a group puts its two experts on
  // different devices.
  c10::Device device = c10::kCPU;
  // One replica for each other device on which `transformer` computes.
  std::vector<ExpertReplica> replicas = {};
};

}  // namespace wan
