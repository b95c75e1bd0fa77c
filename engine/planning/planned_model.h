// A model as planning sees it, before or after it is loaded: dimensions, defaults, policies, and
// the size of each component's weights.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/api/engine_options.h"
#include "engine/api/generation.h"
#include "engine/checkpoint/checkpoint.h"
#include "engine/families/model_family.h"
#include "engine/planning/lora_memory.h"
#include "engine/planning/planned_component.h"

namespace wan {

// A LoRA of a resident model.
struct PlannedLora {
  std::string name;
  // One entry for each expert, in the checkpoint's order; absent if the LoRA does not change it.
  std::vector<std::optional<LoraFootprint>> experts;
  uint64_t host_bytes = 0;  // host memory that it holds
};

struct PlannedModel {
  const ModelFamily* family = nullptr;
  TransformerConfig transformer;
  TextEncoderConfig text_encoder;
  VaeConfig vae;
  // With two experts, the high-noise one computes the timesteps from this fraction of 1000 upwards.
  std::optional<double> expert_boundary;
  std::optional<FewStepConfig> few_step;
  std::optional<GenerationDefaults> generation_defaults;
  // Text encoder, experts, autoencoder, in this order; empty: memory is not planned, and all
  // weights are resident.
  std::vector<PlannedComponent> components;
  int64_t element_bytes = 4;  // size of the dtype in which transformers and text encoder compute
  EngineOptions options;      // those of the engine
  std::vector<PlannedLora> loras;
  // Whether the device has the kernels of engine/ops/fused_convolution.h for the autoencoder.
  bool fuses_convolutions = false;
  // Whether the transformers record forwards of small videos as graphs, where memory allows it.
  bool records_forwards = false;
  // The number of devices of the group.
  int64_t ranks = 1;
  // Whether one half of the devices has the weights of one expert, and the other half those of the
  // other, so that each step is computed by a half. Otherwise each device has both, and all of them
  // compute every step together.
  bool divides_experts = false;

  // Returns the values of fields that a request does not set, size and frames included: the
  // checkpoint's own defaults, else those of a few-step checkpoint (Euler through its timesteps,
  // without guidance), else the family's. Model, prompt and seed are not set.
  GenerationRequest Defaults() const;

  // Returns the width and height of one transformer token in pixels: VAE stride times patch size.
  int SpatialStride() const;
};

// Returns the sampling of a few-step checkpoint, which its distillation has fixed.
SamplingDefaults FewStepSampling(const FewStepConfig& few_step);

// Describes a whole checkpoint. The sizes of its weights follow from the components' dimensions
// (engine/costs/wan/*_cost.h). `element_bytes` is the size of the compute dtype.
PlannedModel PlanCheckpoint(const Checkpoint& checkpoint, int64_t element_bytes,
                            const EngineOptions& options);

}  // namespace wan
