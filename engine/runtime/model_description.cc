#include "engine/runtime/model_description.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "engine/runtime/replica_loading.h"

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

// Returns the names of the file formats from which reading converts the source's weights, ordered
// by the number of tensors.
std::string WidenedForms(const WeightSource& source) {
  std::map<std::string, int> tensors_of;
  for (const TensorInfo& tensor : source.Tensors()) {
    if (tensor.stored_as != DTypeName(tensor.dtype)) ++tensors_of[tensor.stored_as];
  }
  std::vector<std::pair<int, std::string>> forms;
  for (const auto& [form, tensors] : tensors_of) forms.emplace_back(-tensors, form);
  std::sort(forms.begin(), forms.end());
  std::vector<std::string> names;
  for (const auto& [order, form] : forms) names.push_back(form);
  return absl::StrJoin(names, ", ");
}

ComponentDescription DescribeComponent(ModelComponent component, const WeightSource& source,
                                       int64_t bytes, c10::Device device, std::string dtype) {
  return {component,        static_cast<uint64_t>(bytes), CountParameters(source), device.str(),
          std::move(dtype), WidenedForms(source)};
}

// Returns the dtype of most weights.
// `code` is the name of the 8-bit dtype (engine/ops/rounding.h).
std::string WeightsLabel(bool eight_bits, const char* code, const LoadOptions& options) {
  return eight_bits ? code : DTypeLabel(options.dtype);
}

// Adds the peers' names to a description. The description's bytes already count all replicas.
ComponentDescription WithPeers(ComponentDescription description,
                               const std::vector<c10::Device>& peers) {
  for (const c10::Device& peer : peers) absl::StrAppend(&description.device, ",", peer.str());
  return description;
}

std::vector<ComponentDescription> DescribeComponents(const Checkpoint& checkpoint,
                                                     const PipelineModel& model,
                                                     c10::Device encoder_device,
                                                     c10::Device vae_device,
                                                     const LoadOptions& options) {
  std::vector<ComponentDescription> components = {DescribeComponent(
      ModelComponent::kTextEncoder, checkpoint.text_encoder(), model.text_encoder->WeightBytes(),
      encoder_device,
      WeightsLabel(options.engine.eight_bit_weights.text_encoder, "int8", options))};
  for (int i = 0; i < checkpoint.num_experts(); ++i) {
    const Expert& expert = model.experts[i];
    std::vector<c10::Device> replicas;
    for (const ExpertReplica& replica : expert.replicas) replicas.push_back(replica.device);
    components.push_back(
        WithPeers(DescribeComponent(
                      expert.component, checkpoint.transformer(i),
                      expert.transformer->WeightBytes(), expert.device,
                      WeightsLabel(options.engine.eight_bit_weights.transformers, "e4m3", options)),
                  replicas));
  }
  components.push_back(
      WithPeers(DescribeComponent(ModelComponent::kVae, checkpoint.vae(), model.vae->WeightBytes(),
                                  vae_device, DTypeLabel(at::kFloat)),
                DecodesTogether(model.planned) ? options.peers : std::vector<c10::Device>()));
  return components;
}

// Returns ModelDescription::distillation.
std::string DescribeDistillation(const std::optional<FewStepConfig>& few_step) {
  if (!few_step.has_value() || few_step->recognised.empty()) return "";
  return absl::StrCat(few_step->recognised, ": ", few_step->timesteps.size(), " steps of ",
                      few_step->solver, " without guidance");
}

}  // namespace

ModelDescription DescribeModel(const ModelSpec& spec, const Checkpoint& checkpoint,
                               const OpenedLoras& loras, const PipelineModel& model,
                               std::span<const c10::Device> devices, const LoadOptions& options) {
  const ModelFamily& family = *model.planned.family;
  ModelDescription description;
  description.name = spec.name;
  description.path = spec.path;
  description.family = family.id;
  description.layout = std::string(LayoutName(checkpoint.layout()));
  description.distillation = DescribeDistillation(model.planned.few_step);
  description.components =
      DescribeComponents(checkpoint, model, devices.front(), devices.back(), options);
  description.defaults = model.planned.Defaults();
  description.defaults.model = spec.name;
  description.accepts_image = family.image != ImageRole::kNone;
  description.spatial_stride = model.planned.SpatialStride();
  description.temporal_stride = static_cast<int>(model.planned.vae.stride_temporal);
  description.has_tiny_decoder = model.planned.vae.tiny_decoder.has_value();
  description.tiny_decoder_error = model.planned.tiny_decoder_error;
  description.experts = static_cast<int>(family.experts.size());
  DescribeLoras(checkpoint, loras, description);
  return description;
}

void DescribeLoras(const Checkpoint& checkpoint, const OpenedLoras& loras,
                   ModelDescription& description) {
  description.loras = loras.Describe();
  description.skipped_loras = loras.skipped();
  description.files.clear();
  // No checkpoint has a folder "loras/", so the names of LoRA files cannot collide with names of
  // the checkpoint's files.
  std::merge(checkpoint.files().begin(), checkpoint.files().end(), loras.files().begin(),
             loras.files().end(), std::back_inserter(description.files),
             [](const ModelFile& a, const ModelFile& b) { return a.name < b.name; });
}

}  // namespace wan
