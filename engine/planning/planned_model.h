// A model as planning sees it, before or after it is loaded: dimensions, defaults, policies, and
// what each component's weights take of a device.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/api/generation.h"
#include "engine/api/residency.h"
#include "engine/checkpoint/checkpoint.h"
#include "engine/planning/lora_memory.h"
#include "engine/planning/model_family.h"
#include "engine/planning/planned_component.h"

namespace wan {

// A LoRA of a resident model.
struct PlannedLora {
  std::string name;
  // By expert, in the checkpoint's order; absent for one that it does not change.
  std::vector<std::optional<LoraFootprint>> experts;
  uint64_t host_bytes = 0;  // host memory that it holds
};

// A resident model as planning sees it.
struct PlannedModel {
  const ModelFamily* family = nullptr;
  TransformerConfig transformer;
  TextEncoderConfig text_encoder;
  VaeConfig vae;
  // Of two experts the high-noise one takes the timesteps from this fraction of 1000 on.
  std::optional<double> expert_boundary;
  std::optional<FewStepConfig> few_step;
  std::optional<GenerationDefaults> generation_defaults;
  // Text encoder, experts, autoencoder; empty: memory is not planned, and all of it is resident.
  std::vector<PlannedComponent> components;
  int64_t element_bytes = 4;  // of what transformers and text encoder compute in
  std::vector<PlannedLora> loras;

  // What a request takes where it says nothing, size and frames included: the checkpoint's own
  // defaults, else those of a few-step one (Euler through its timesteps, unguided), else the
  // family's. Without model, prompt and seed.
  GenerationRequest Defaults() const;

  // Pixels that one transformer token is wide and high: VAE stride times patch size.
  int SpatialStride() const;
};

// The sampling of a few-step checkpoint: its distillation has fixed it.
SamplingDefaults FewStepSampling(const FewStepConfig& few_step);

// The whole checkpoint: the weights' bytes follow from the components' dimensions
// (engine/models/wan/*_cost.h). `element_bytes` is the size of the compute dtype. A component that
// `residency` does not name is kAuto.
PlannedModel PlanCheckpoint(const Checkpoint& checkpoint, int64_t element_bytes,
                            std::span<const ComponentResidency> residency);

}  // namespace wan
