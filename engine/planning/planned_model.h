// A model as planning sees it, loaded or not: its dimensions, defaults, policies and weight sizes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
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
  // One entry per expert, in the checkpoint's order; nullopt if the LoRA does not change that
  // expert.
  std::vector<std::optional<LoraFootprint>> experts;
  uint64_t host_bytes = 0;  // bytes of host memory that its matrices take
  std::optional<LoraSchedule> schedule = {};
};

struct PlannedModel {
  const ModelFamily* family = nullptr;
  TransformerConfig transformer;
  TextEncoderConfig text_encoder;
  VaeConfig vae;
  absl::Status tiny_decoder_error;  // Checkpoint::tiny_decoder_error
  // If there are two experts, the high-noise expert computes timesteps of at least this fraction of
  // 1000.
  std::optional<double> expert_boundary;
  std::optional<FewStepConfig> few_step;
  std::optional<GenerationDefaults> generation_defaults;
  // The checkpoint's own ratios for fast jobs; nullopt: jobs use the published ratios, if the model
  // has the published dimensions.
  std::optional<StepRatios> step_ratios;
  // Text encoder, experts and autoencoder, in this order. If empty, memory is not planned and all
  // weights are resident.
  std::vector<PlannedComponent> components;
  int64_t element_bytes = 4;  // size of an element of transformers and text encoder
  EngineOptions options;      // settings for all jobs of the engine
  std::vector<PlannedLora> loras;
  // Why the transformers cannot compute with inputs of 8 bits, to follow "must be exact"; nullopt
  // if they can.
  std::optional<std::string> no_eight_bits;
  // Whether the device has the kernels of engine/ops/fused_convolution.h.
  bool fuses_convolutions = false;
  // Whether the transformers record forwards of small videos as graphs, if memory allows.
  bool records_forwards = false;
  // The number of devices in the group.
  int64_t ranks = 1;
  // True: each half of the devices has only one expert and computes that expert's steps alone.
  // False: every device has both experts, and all devices compute every step together.
  bool divides_experts = false;

  // Returns the values of fields that a request does not set. A value comes from the checkpoint's
  // own defaults; otherwise from the few-step schedule (its solver and timesteps, no guidance);
  // otherwise from the family. Model, prompt and seed stay unset.
  GenerationRequest Defaults() const;

  // Returns the indices, in rising order, of the transformers' blocks that never compute with 8
  // bits.
  std::vector<int> ExactBlocks() const;

  // Returns how many pixels a transformer token covers along a side: the VAE's stride times the
  // patch size.
  int SpatialStride() const;
};

// Returns the sampling for which a few-step checkpoint was distilled. The result refers to
// `few_step`.
SamplingDefaults FewStepSampling(const FewStepConfig& few_step);

// Describes a whole checkpoint. The sizes of weights follow from the components' dimensions
// (engine/costs/wan/*_cost.h). `element_bytes` is the size of one element of the compute dtype.
PlannedModel PlanCheckpoint(const Checkpoint& checkpoint, int64_t element_bytes,
                            const EngineOptions& options);

}  // namespace wan
