#include "engine/runtime/model_loading.h"

#include <span>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/models/wan/transformer.h"
#include "engine/models/wan/umt5.h"
#include "engine/models/wan/vae.h"

namespace wan {
namespace {

uint64_t CountParameters(const WeightSource& source) {
  uint64_t count = 0;
  for (const TensorInfo& tensor : source.Tensors()) {
    uint64_t elements = 1;
    for (const int64_t size : tensor.shape) elements *= static_cast<uint64_t>(size);
    count += elements;
  }
  return count;
}

ComponentDescription DescribeComponent(std::string name, const WeightSource& source, int64_t bytes,
                                       const LoadOptions& options, at::ScalarType dtype) {
  return {std::move(name), static_cast<uint64_t>(bytes), CountParameters(source),
          options.device.str(), DTypeLabel(dtype)};
}

// As diffusers' folders and wan_inspect call the experts.
const char* TransformerName(int expert) { return expert == 0 ? "transformer" : "transformer_2"; }

GenerationRequest DefaultsOf(const ModelSpec& spec, const PlannedModel& planned) {
  const ModelFamily& family = *planned.family;
  const SamplingDefaults sampling = planned.Sampling();
  GenerationRequest defaults;
  defaults.model = spec.name;
  defaults.negative_prompt = std::string(sampling.negative_prompt);
  defaults.width = family.shape.width;
  defaults.height = family.shape.height;
  defaults.num_frames = family.shape.num_frames;
  defaults.fps = family.fps;
  defaults.steps = sampling.steps;
  defaults.guidance_scale = sampling.guidance_scale;
  defaults.shift = sampling.shift;
  defaults.solver = std::string(sampling.solver);
  defaults.outputs = {OutputKind::kMp4};
  return defaults;
}

ModelDescription Describe(const ModelSpec& spec, const Checkpoint& checkpoint,
                          const PipelineModel& model, const LoadOptions& options) {
  const ModelFamily& family = *model.planned.family;
  ModelDescription description;
  description.name = spec.name;
  description.path = spec.path;
  description.family = std::string(family.name);
  description.layout = std::string(LayoutName(checkpoint.layout()));
  description.components = {DescribeComponent("text_encoder", checkpoint.text_encoder(),
                                              model.text_encoder->WeightBytes(), options,
                                              options.dtype)};
  for (int i = 0; i < checkpoint.num_experts(); ++i) {
    description.components.push_back(
        DescribeComponent(TransformerName(i), checkpoint.transformer(i),
                          model.experts[i].transformer->WeightBytes(), options, options.dtype));
  }
  description.components.push_back(
      DescribeComponent("vae", checkpoint.vae(), model.vae->WeightBytes(), options, at::kFloat));
  description.defaults = DefaultsOf(spec, model.planned);
  description.accepts_image = family.image != ImageRole::kNone;
  description.spatial_stride = model.planned.SpatialStride();
  description.temporal_stride = static_cast<int>(model.planned.vae.stride_temporal);
  description.experts = family.experts;
  return description;
}

// Each Load function names file and tensor of what is wrong; this adds the component and moves the
// result.
template <typename Part>
absl::Status Take(const char* component, absl::StatusOr<std::unique_ptr<Part>> loaded,
                  std::unique_ptr<Part>& slot) {
  if (!loaded.ok()) {
    return absl::Status(loaded.status().code(),
                        absl::StrCat(component, ": ", loaded.status().message()));
  }
  slot = *std::move(loaded);
  return absl::OkStatus();
}

}  // namespace

std::string DTypeLabel(at::ScalarType dtype) { return dtype == at::kBFloat16 ? "bf16" : "fp32"; }

absl::StatusOr<std::shared_ptr<LoadedModel>> LoadModelFromCheckpoint(const ModelSpec& spec,
                                                                     const LoadOptions& options) {
  absl::StatusOr<std::unique_ptr<Checkpoint>> opened = Checkpoint::Open(spec.path);
  if (!opened.ok()) return opened.status();
  const Checkpoint& checkpoint = **opened;

  auto model = std::make_shared<LoadedModel>();
  PipelineModel& pipeline = model->pipeline;
  pipeline.device = options.device;
  pipeline.planned.family = FindModelFamily(checkpoint.model());
  if (pipeline.planned.family == nullptr) {
    return absl::UnimplementedError(absl::StrCat(spec.path, " holds the model ", checkpoint.model(),
                                                 ", which this server does not run"));
  }
  pipeline.planned.transformer = checkpoint.transformer_config();
  pipeline.planned.text_encoder = checkpoint.text_encoder_config();
  pipeline.planned.vae = checkpoint.vae_config();
  pipeline.planned.expert_boundary = checkpoint.expert_boundary();
  pipeline.planned.few_step = checkpoint.few_step();

  if (!checkpoint.tokenizer_path().empty()) {
    if (absl::Status status =
            Take("tokenizer", Tokenizer::Load(checkpoint.tokenizer_path()), pipeline.tokenizer);
        !status.ok()) {
      return status;
    }
  }
  if (absl::Status status =
          Take("text_encoder",
               LoadUmt5(checkpoint.text_encoder(), checkpoint.text_encoder_config(),
                        {options.device, options.dtype}),
               pipeline.text_encoder);
      !status.ok()) {
    return status;
  }
  const std::span<const std::string_view> expert_names = ExpertNames(*pipeline.planned.family);
  for (int i = 0; i < checkpoint.num_experts(); ++i) {
    Expert& expert = pipeline.experts.emplace_back();
    expert.name = expert_names[i];
    if (absl::Status status =
            Take(TransformerName(i),
                 LoadWanTransformer(checkpoint.transformer(i), checkpoint.transformer_config(i),
                                    {options.device, options.dtype}),
                 expert.transformer);
        !status.ok()) {
      return status;
    }
  }
  if (absl::Status status =
          Take("vae",
               LoadWanVae(checkpoint.vae(), checkpoint.vae_config(),
                          {options.device, at::kFloat, options.dtype != at::kFloat}),
               pipeline.vae);
      !status.ok()) {
    return status;
  }
  model->description = Describe(spec, checkpoint, pipeline, options);
  return model;
}

}  // namespace wan
