// From a request to a GenerationPlan: a pure function. Sizes, frames, timesteps, stages and the
// work in each are decided here and nowhere else.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/api/engine.h"
#include "engine/api/errors.h"
#include "engine/api/generation.h"
#include "engine/checkpoint/checkpoint.h"
#include "engine/planning/memory_estimate.h"
#include "engine/planning/model_family.h"
#include "engine/planning/residency_plan.h"

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

// What was learnt of the request by reading its texts and its image.
struct InspectedRequest {
  // Tokens with the end mark, before any cut. Absent if the text could not be read at all, or for
  // the negative prompt of a model without guidance.
  std::optional<int64_t> prompt_tokens;
  std::optional<int64_t> negative_prompt_tokens;
  // Pixels of the image; absent without one or if it could not be read.
  std::optional<VideoShape> image;  // num_frames is unused
  // What reading found wrong, for example a broken image.
  std::vector<FieldViolation> violations;
};

struct PlanLimits {
  // What a job may hold of the device's memory, weights included, in bytes; 0: unknown, and then
  // everything is resident and nothing refused.
  uint64_t device_memory_bytes = 0;
};

// `drawn_seed` is used if the request has none (or a negative one). Errors: INVALID_ARGUMENT with
// every violation (FieldViolationsOf).
absl::StatusOr<GenerationPlan> MakePlan(const GenerationRequest& request, const PlannedModel& model,
                                        const InspectedRequest& inspected, int64_t drawn_seed,
                                        const PlanLimits& limits);

// Floating-point operations of one transformer forward for `tokens` video tokens, batch 1, without
// the text keys and values (computed once a job).
double TransformerForwardFlops(const TransformerConfig& config, int64_t tokens);

}  // namespace wan
