// A model as planning sees it, loaded or not: dimensions, defaults, policies and weight sizes.
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
  // One entry per expert, in the checkpoint's order; nullopt if the LoRA does not change it.
  std::vector<std::optional<LoraFootprint>> experts;
  uint64_t host_bytes = 0;  // bytes of host memory
};

struct PlannedModel {
  const ModelFamily* family = nullptr;
  TransformerConfig transformer;
  TextEncoderConfig text_encoder;
  VaeConfig vae;
  // With two experts, the high-noise one computes timesteps from this fraction of 1000 upwards.
  std::optional<double> expert_boundary;
  std::optional<FewStepConfig> few_step;
  std::optional<GenerationDefaults> generation_defaults;
  // Text encoder, experts and autoencoder, in this order. Empty: memory is not planned and all
  // weights are resident.
  std::vector<PlannedComponent> components;
  int64_t element_bytes =
      4;                  // bytes per element of the compute dtype of transformers and text encoder
  EngineOptions options;  // the engine's options
  std::vector<PlannedLora> loras;
  // Whether the device has the kernels of engine/ops/fused_convolution.h.
  bool fuses_convolutions = false;
  // Whether transformers record forwards of small videos as graphs if memory allows.
  bool records_forwards = false;
  // The number of devices of the group.
  int64_t ranks = 1;
  // Whether each half of the devices has one expert, and alone computes that expert's steps.
  // Otherwise every device has both experts, and all compute every step together.
  bool divides_experts = false;

  // Returns values for fields that a request does not set: the checkpoint's own defaults, else
  // those of a few-step checkpoint (Euler through its timesteps, without guidance), else the
  // family's. Model, prompt and seed are not set.
  GenerationRequest Defaults() const;

  // Returns the side of a transformer token in pixels: VAE stride times patch size.
  int SpatialStride() const;
};

// Returns the sampling that a few-step checkpoint was distilled for.
SamplingDefaults FewStepSampling(const FewStepConfig& few_step);

// Describes a whole checkpoint. Weight sizes follow from the components' dimensions
// (engine/costs/wan/*_cost.h). `element_bytes` is per element of the compute dtype.
PlannedModel PlanCheckpoint(const Checkpoint& checkpoint, int64_t element_bytes,
                            const EngineOptions& options);

}  // namespace wan
