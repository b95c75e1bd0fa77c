#include "engine/planning/planned_model.h"

#include <span>

#include "engine/api/request_defaults.h"
#include "engine/costs/wan/transformer_cost.h"
#include "engine/costs/wan/umt5_cost.h"
#include "engine/costs/wan/vae_cost.h"
#include "engine/planning/step_reuse.h"

namespace wan {
namespace {

ResidencyPolicy PolicyIn(std::span<const ComponentResidency> residency, ModelComponent component) {
  for (const ComponentResidency& entry : residency) {
    if (entry.component == component) return entry.policy;
  }
  return ResidencyPolicy::kAuto;
}

}  // namespace

SamplingDefaults FewStepSampling(const FewStepConfig& few_step) {
  return {.steps = static_cast<int>(few_step.timesteps.size()),
          .guidance_scale = {1},
          .shift = few_step.shift,
          .solver = few_step.solver,
          .negative_prompt = ""};
}

GenerationRequest PlannedModel::Defaults() const {
  const SamplingDefaults sampling =
      few_step.has_value() ? FewStepSampling(*few_step) : family->sampling;
  const GenerationDefaults own = generation_defaults.value_or(GenerationDefaults{});
  GenerationRequest defaults;
  defaults.negative_prompt = own.negative_prompt.value_or(std::string(sampling.negative_prompt));
  defaults.width = own.width.value_or(family->shape.width);
  defaults.height = own.height.value_or(family->shape.height);
  defaults.num_frames = own.num_frames.value_or(family->shape.num_frames);
  defaults.fps = own.fps.value_or(family->fps);
  defaults.steps = own.steps.value_or(sampling.steps);
  defaults.guidance_scale =
      own.guidance_scale.empty() ? sampling.guidance_scale : own.guidance_scale;
  defaults.shift = own.shift.value_or(sampling.shift);
  defaults.solver = own.solver.value_or(std::string(sampling.solver));
  defaults.outputs = {OutputKind::kMp4};
  SetOperatorDefaults(options, defaults);
  if (defaults.quality == Quality::kFast && ProblemOfFast(defaults, *this, true).has_value()) {
    defaults.quality = Quality::kHigh;
  }
  return defaults;
}

std::vector<int> PlannedModel::ExactBlocks() const {
  return options.quality_exact_blocks.In(static_cast<int>(transformer.num_layers));
}

int PlannedModel::SpatialStride() const {
  return static_cast<int>(vae.stride_spatial * transformer.patch_size[1]);
}

PlannedModel PlanCheckpoint(const Checkpoint& checkpoint, int64_t element_bytes,
                            const EngineOptions& options) {
  PlannedModel model;
  model.options = options;
  model.family = &FindModelFamily(checkpoint.family());
  model.transformer = checkpoint.transformer_config();
  model.text_encoder = checkpoint.text_encoder_config();
  model.vae = checkpoint.vae_config();
  model.tiny_decoder_error = checkpoint.tiny_decoder_error();
  model.expert_boundary = checkpoint.expert_boundary();
  model.few_step = checkpoint.few_step();
  model.generation_defaults = checkpoint.generation_defaults();
  model.step_ratios = checkpoint.step_ratios();
  model.element_bytes = element_bytes;
  const auto add = [&](ModelComponent id, const WeightGroups& weights) {
    const WeightFootprint footprint = weights.Footprint(element_bytes);
    model.components.push_back({.component = id,
                                .policy = PolicyIn(options.residency, id),
                                .bytes = footprint.bytes,
                                .base_bytes = footprint.base_bytes,
                                .group_bytes = footprint.group_bytes});
  };
  add(ModelComponent::kTextEncoder,
      TextEncoderWeightGroups(model.text_encoder, options.eight_bit_weights.text_encoder));
  for (int i = 0; i < checkpoint.num_experts(); ++i) {
    add(TransformerComponent(i),
        TransformerWeightGroups(checkpoint.transformer_config(i),
                                options.eight_bit_weights.transformers, model.ExactBlocks()));
  }
  add(ModelComponent::kVae, VaeWeightGroups(model.vae));
  return model;
}

}  // namespace wan
