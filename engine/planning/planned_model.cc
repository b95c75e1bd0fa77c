#include "engine/planning/planned_model.h"

#include <algorithm>
#include <initializer_list>
#include <vector>

#include "engine/checkpoint/expected_tensors.h"
#include "engine/planning/allocator_rounding.h"

namespace wan {
namespace {

constexpr int64_t kFp32 = 4;

// Adds up a component's tensors in groups, as its loader enters them into ComponentWeights.
class WeightSum {
 public:
  void BeginGroup() { groups_.push_back(0); }

  void Add(int64_t elements, int64_t element_bytes) {
    const int64_t bytes = elements * element_bytes;
    apart_ += AllocatedBytes(bytes);
    // In the memory of a group every tensor begins where the widest loads may.
    constexpr int64_t kAlignment = 512;
    groups_.back() += (bytes + kAlignment - 1) / kAlignment * kAlignment;
  }
  void AddLinear(int64_t out, int64_t in, int64_t element_bytes) {
    Add(out * in, element_bytes);
    Add(out, element_bytes);
  }

  PlannedComponent Result() const {
    int64_t together = 0;
    int64_t largest = 0;
    for (size_t i = 0; i < groups_.size(); ++i) {
      together += AllocatedBytes(groups_[i]);
      if (i > 0) largest = std::max(largest, AllocatedBytes(groups_[i]));
    }
    PlannedComponent component;
    // Each tensor for itself, as they are loaded, or each group, as they come back from the host.
    component.bytes = static_cast<uint64_t>(std::max(apart_, together));
    component.base_bytes = static_cast<uint64_t>(AllocatedBytes(groups_.front()));
    component.group_bytes = static_cast<uint64_t>(largest);
    return component;
  }

 private:
  int64_t apart_ = 0;
  std::vector<int64_t> groups_{0};
};

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
          .solver = "euler",
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
  return defaults;
}

int PlannedModel::SpatialStride() const {
  return static_cast<int>(vae.stride_spatial * transformer.patch_size[1]);
}

PlannedComponent TextEncoderWeights(const TextEncoderConfig& config, int64_t element_bytes) {
  const int64_t inner = config.num_heads * config.head_dim;
  WeightSum sum;
  sum.Add(config.vocab_size * config.dim, element_bytes);
  sum.Add(config.dim, kFp32);
  for (int64_t i = 0; i < config.num_layers; ++i) {
    sum.BeginGroup();
    sum.Add(config.dim, kFp32);
    sum.Add(3 * inner * config.dim, element_bytes);
    sum.Add(config.dim * inner, element_bytes);
    sum.Add(config.num_buckets * config.num_heads, element_bytes);
    sum.Add(config.dim, kFp32);
    sum.Add(2 * config.ffn_dim * config.dim, element_bytes);
    sum.Add(config.dim * config.ffn_dim, element_bytes);
  }
  return sum.Result();
}

PlannedComponent TransformerWeights(const TransformerConfig& config, int64_t element_bytes) {
  const int64_t dim = config.dim;
  const int64_t patch = config.patch_size[0] * config.patch_size[1] * config.patch_size[2];
  WeightSum sum;
  sum.AddLinear(dim, config.in_channels * patch, kFp32);
  sum.AddLinear(dim, config.freq_dim, kFp32);
  sum.AddLinear(dim, dim, kFp32);
  sum.AddLinear(6 * dim, dim, kFp32);
  sum.AddLinear(dim, config.text_dim, element_bytes);
  sum.AddLinear(dim, dim, element_bytes);
  sum.Add(2 * dim, kFp32);
  sum.AddLinear(patch * config.out_channels, dim, kFp32);
  // Keys and values of the text are groups of their own, before those of the steps.
  for (int64_t i = 0; i < config.num_layers; ++i) {
    sum.BeginGroup();
    sum.AddLinear(2 * dim, dim, element_bytes);
    sum.Add(dim, kFp32);
  }
  for (int64_t i = 0; i < config.num_layers; ++i) {
    sum.BeginGroup();
    sum.Add(6 * dim, kFp32);
    sum.AddLinear(3 * dim, dim, element_bytes);
    sum.Add(2 * dim, kFp32);
    sum.AddLinear(dim, dim, element_bytes);
    for (int norm = 0; norm < 3; ++norm) sum.Add(dim, kFp32);
    for (int product = 0; product < 2; ++product) sum.AddLinear(dim, dim, element_bytes);
    sum.AddLinear(config.ffn_dim, dim, element_bytes);
    sum.AddLinear(dim, config.ffn_dim, element_bytes);
  }
  return sum.Result();
}

PlannedComponent VaeWeights(const VaeConfig& config) {
  const std::vector<TensorSpec> tensors = ExpectedTensors(config);
  WeightSum sum;
  for (const bool encoder : {true, false}) {
    sum.BeginGroup();
    for (const TensorSpec& tensor : tensors) {
      const bool of_encoder =
          tensor.name.starts_with("encoder.") || tensor.name.starts_with("conv1.");
      if (of_encoder == encoder) sum.Add(ElementCount(tensor.shape).value_or(0), kFp32);
    }
  }
  return sum.Result();
}

PlannedModel PlanCheckpoint(const Checkpoint& checkpoint, int64_t element_bytes,
                            std::span<const ComponentResidency> residency) {
  PlannedModel model;
  model.family = &FindModelFamily(checkpoint.family());
  model.transformer = checkpoint.transformer_config();
  model.text_encoder = checkpoint.text_encoder_config();
  model.vae = checkpoint.vae_config();
  model.expert_boundary = checkpoint.expert_boundary();
  model.few_step = checkpoint.few_step();
  model.generation_defaults = checkpoint.generation_defaults();
  model.element_bytes = element_bytes;
  const auto add = [&](ModelComponent id, PlannedComponent component) {
    component.component = id;
    component.policy = PolicyIn(residency, id);
    model.components.push_back(component);
  };
  add(ModelComponent::kTextEncoder, TextEncoderWeights(model.text_encoder, element_bytes));
  for (int i = 0; i < checkpoint.num_experts(); ++i) {
    add(TransformerComponent(i),
        TransformerWeights(checkpoint.transformer_config(i), element_bytes));
  }
  add(ModelComponent::kVae, VaeWeights(model.vae));
  return model;
}

}  // namespace wan
