#include "engine/runtime/model_loading.h"

#include <algorithm>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/group/thread_communicator.h"
#include "engine/models/group_transformer.h"
#include "engine/models/wan/transformer.h"
#include "engine/models/wan/umt5.h"
#include "engine/models/wan/vae.h"
#include "engine/ops/fused_convolution.h"
#include "engine/planning/host_memory.h"
#include "engine/planning/plan.h"
#include "engine/planning/planned_model.h"
#include "engine/runtime/lora_loading.h"
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

ComponentDescription DescribeComponent(ModelComponent component, const WeightSource& source,
                                       int64_t bytes, at::Device device, at::ScalarType dtype) {
  return {component, static_cast<uint64_t>(bytes), CountParameters(source), device.str(),
          DTypeLabel(dtype)};
}

// Adds the devices that have a replica each; the bytes are those of all of them.
ComponentDescription WithPeers(ComponentDescription description,
                               const std::vector<at::Device>& peers) {
  for (const at::Device& peer : peers) absl::StrAppend(&description.device, ",", peer.str());
  return description;
}

// Plans a request that leaves everything to the defaults, with texts of the greatest length that is
// allowed.
absl::StatusOr<GenerationPlan> PlanDefaults(const PlannedModel& planned, const PlanLimits& limits) {
  GenerationRequest request;
  request.size_is_exact = true;
  InspectedRequest inspected;
  inspected.prompt_tokens = planned.transformer.text_len;
  inspected.negative_prompt_tokens = planned.transformer.text_len;
  if (!planned.family->accepts_text_only) {
    request.image = std::make_shared<const std::string>();
    const VideoShape& shape = planned.family->shape;
    inspected.image = ImageSize{shape.width, shape.height};
  }
  return MakePlan(ResolveRequest(request, planned, /*drawn_seed=*/0), planned, inspected, limits);
}

// A checkpoint whose defaults no request could have is damaged.
absl::Status CheckDefaults(const Checkpoint& checkpoint, const PlannedModel& planned) {
  if (!planned.generation_defaults.has_value()) return absl::OkStatus();
  const absl::StatusOr<GenerationPlan> plan = PlanDefaults(planned, {});
  if (plan.ok()) return absl::OkStatus();
  return absl::DataLossError(
      absl::StrCat(checkpoint.path(), "/generation_defaults.json: ", plan.status().message()));
}

// Decides where the components are loaded to: where a job of the model's default shape would have
// them, or to host memory if that job does not fit.
std::vector<ResidencyPolicy> FirstPolicies(const PlannedModel& planned, const PlanLimits& limits) {
  const absl::StatusOr<GenerationPlan> plan = PlanDefaults(planned, limits);
  std::vector<ResidencyPolicy> policies;
  for (size_t i = 0; i < planned.components.size(); ++i) {
    const ResidencyPolicy configured = planned.components[i].policy;
    const ResidencyPolicy decided =
        plan.ok() ? plan->residency[i].policy : ResidencyPolicy::kStream;
    policies.push_back(configured == ResidencyPolicy::kAuto ? decided : configured);
  }
  return policies;
}

// Where a component is built, and whether its weights may move.
struct Place {
  at::Device device;
  std::shared_ptr<ComponentWeights> weights;
  bool moves = true;  // false: it computes on the CPU by its policy
};

ComponentWeights::Home HomeOf(ResidencyPolicy policy) {
  using Home = ComponentWeights::Home;
  switch (policy) {
    case ResidencyPolicy::kResident:
    case ResidencyPolicy::kCpu:
      return Home::kDevice;
    case ResidencyPolicy::kDisk:
      return Home::kDisk;
    case ResidencyPolicy::kAuto:
    case ResidencyPolicy::kHost:
    case ResidencyPolicy::kStream:
      break;
  }
  return Home::kHost;
}

// The weights keep the checkpoint, whose files stay open as long as the model is loaded: a later
// job may want them to be read again.
Place MakePlace(ResidencyPolicy policy, const LoadOptions& options,
                std::shared_ptr<const WeightSource> source) {
  const bool moves = policy != ResidencyPolicy::kCpu;
  const at::Device device = moves ? options.device : at::kCPU;
  auto weights = std::make_shared<ComponentWeights>(MakeWeightMover(device), HomeOf(policy),
                                                    std::move(source));
  if (!device.is_cpu()) weights->CountIn(options.counters.weights);
  return {device, std::move(weights), moves};
}

// The sources in the order of PlannedModel::components; each keeps the checkpoint.
std::vector<std::shared_ptr<const WeightSource>> SourcesOf(
    const std::shared_ptr<const Checkpoint>& checkpoint) {
  std::vector<std::shared_ptr<const WeightSource>> sources;
  sources.emplace_back(checkpoint, &checkpoint->text_encoder());
  for (int i = 0; i < checkpoint->num_experts(); ++i) {
    sources.emplace_back(checkpoint, &checkpoint->transformer(i));
  }
  sources.emplace_back(checkpoint, &checkpoint->vae());
  return sources;
}

ModelDescription Describe(const ModelSpec& spec, const Checkpoint& checkpoint,
                          const PipelineModel& model, const std::vector<Place>& places,
                          const LoadOptions& options) {
  const ModelFamily& family = *model.planned.family;
  ModelDescription description;
  description.name = spec.name;
  description.path = spec.path;
  description.family = family.id;
  description.layout = std::string(LayoutName(checkpoint.layout()));
  description.components = {
      DescribeComponent(ModelComponent::kTextEncoder, checkpoint.text_encoder(),
                        model.text_encoder->WeightBytes(), places.front().device, options.dtype)};
  for (int i = 0; i < checkpoint.num_experts(); ++i) {
    const Expert& expert = model.experts[i];
    std::vector<at::Device> replicas;
    for (const ExpertReplica& replica : expert.replicas) replicas.push_back(replica.device);
    description.components.push_back(WithPeers(
        DescribeComponent(expert.component, checkpoint.transformer(i),
                          expert.transformer->WeightBytes(), expert.device, options.dtype),
        replicas));
  }
  description.components.push_back(
      WithPeers(DescribeComponent(ModelComponent::kVae, checkpoint.vae(), model.vae->WeightBytes(),
                                  places.back().device, at::kFloat),
                DecodesTogether(model.planned) ? options.peers : std::vector<at::Device>()));
  description.defaults = model.planned.Defaults();
  description.defaults.model = spec.name;
  description.accepts_image = family.image != ImageRole::kNone;
  description.spatial_stride = model.planned.SpatialStride();
  description.temporal_stride = static_cast<int>(model.planned.vae.stride_temporal);
  description.experts = static_cast<int>(family.experts.size());
  return description;
}

// Measures a part of the loading from construction to End().
class LoadingPart {
 public:
  explicit LoadingPart(Span* span) : span_(span), start_(span == nullptr ? 0 : span->Seconds()) {}

  void End(std::string_view name, std::optional<int64_t> bytes = std::nullopt) {
    if (span_ == nullptr) return;
    SpanPart part{std::string(name), start_, span_->Seconds() - start_, std::nullopt, std::nullopt};
    if (bytes.has_value()) part.bytes = static_cast<uint64_t>(*bytes);
    span_->AddPart(std::move(part));
    start_ = span_->Seconds();
  }

 private:
  Span* const span_;
  double start_;
};

// Each Load function names file and tensor of what is wrong; this adds the component and moves
// the result.
template <typename Loaded, typename Part>
absl::Status Take(std::string_view part, absl::StatusOr<std::unique_ptr<Loaded>> loaded,
                  std::unique_ptr<Part>& slot) {
  if (!loaded.ok()) {
    return absl::Status(loaded.status().code(),
                        absl::StrCat(std::string(part), ": ", loaded.status().message()));
  }
  slot = *std::move(loaded);
  return absl::OkStatus();
}

// Makes the experts' transformers of what is loaded to the first device and to the others.
void AddTransformers(std::vector<LoadedReplicas>& replicas, const LoadOptions& options,
                     const PlannedModel& planned,
                     std::vector<std::unique_ptr<RankTransformer>>& transformers,
                     std::vector<Expert>& experts) {
  for (size_t i = 0; i < experts.size(); ++i) {
    Expert& expert = experts[i];
    if (options.peers.empty()) {
      expert.transformer = std::move(transformers[i]);
      continue;
    }
    std::vector<GroupMember> members;
    if (transformers[i] != nullptr) {
      members.push_back({options.device, std::move(transformers[i]), options.counters.exchanges});
    }
    for (size_t peer = 0; peer < options.peers.size(); ++peer) {
      if (!HoldsExpert(planned, peer + 1, i)) continue;
      LoadedReplica& replica = replicas[peer].experts[i];
      if (members.empty()) {
        expert.device = options.peers[peer];
        expert.weights = std::move(replica.weights);
      } else {
        expert.replicas.push_back({options.peers[peer], std::move(replica.weights)});
      }
      members.push_back(
          {options.peers[peer], std::move(replica.transformer),
           options.peer_counters.empty() ? nullptr : options.peer_counters[peer].exchanges});
    }
    expert.transformer = MakeGroupTransformer(std::move(members), &MakeThreadGroup);
  }
}

// If a job of the model's default shape finds no room where each device of the group has both
// experts, but does where it has one, the experts are divided.
void DivideExpertsIfNeeded(uint64_t device_memory_bytes, PlannedModel& planned) {
  if (planned.ranks == 1 || planned.family->experts.size() != 2) return;
  const PlanLimits limits{device_memory_bytes, {}};
  if (PlanDefaults(planned, limits).ok()) return;
  PlannedModel divided = planned;
  DivideExperts(divided);
  if (PlanDefaults(divided, limits).ok()) planned = std::move(divided);
}

}  // namespace

std::string DTypeLabel(at::ScalarType dtype) { return dtype == at::kBFloat16 ? "bf16" : "fp32"; }

absl::Status CheckModelFiles(const ModelSpec& spec) {
  const absl::StatusOr<std::unique_ptr<Checkpoint>> checkpoint = Checkpoint::Open(spec.path);
  if (!checkpoint.ok()) return checkpoint.status();
  const ModelFamily& family = FindModelFamily((*checkpoint)->family());
  return OpenedLoras::Open(spec.loras, **checkpoint, family.experts).status();
}

absl::StatusOr<std::shared_ptr<LoadedModel>> LoadModelFromCheckpoint(const ModelSpec& spec,
                                                                     const LoadOptions& options) {
  LoadingPart part(options.span);
  absl::StatusOr<std::unique_ptr<Checkpoint>> opened = Checkpoint::Open(spec.path);
  if (!opened.ok()) return opened.status();
  const std::shared_ptr<const Checkpoint> kept = *std::move(opened);
  const Checkpoint& checkpoint = *kept;

  auto model = std::make_shared<LoadedModel>();
  PipelineModel& pipeline = model->pipeline;
  pipeline.device = options.device;
  pipeline.h264 = options.h264;
  PlannedModel& planned = pipeline.planned;
  planned = PlanCheckpoint(checkpoint, static_cast<int64_t>(at::elementSize(options.dtype)),
                           options.residency);
  planned.vae_precision = options.vae_precision;
  planned.h264_crf = options.h264.crf;
  // Ranks that exchange tensors inside a forward cannot record it.
  planned.records_forwards = options.graphs != nullptr && options.peers.empty();
  planned.guidance_batching = options.guidance_batching;
  if (absl::Status status = PlanForGroup(static_cast<int64_t>(options.peers.size()) + 1, planned);
      !status.ok()) {
    return status;
  }
  planned.fuses_convolutions = planned.components.back().policy != ResidencyPolicy::kCpu &&
                               HasFusedConvolutions(options.device);
  if (absl::Status status = CheckDefaults(checkpoint, planned); !status.ok()) return status;

  const std::span<const ExpertRole> roles = pipeline.planned.family->experts;
  const absl::StatusOr<OpenedLoras> loras = OpenedLoras::Open(spec.loras, checkpoint, roles);
  if (!loras.ok()) return loras.status();
  pipeline.planned.loras = loras->Plan();
  part.End("checkpoint");

  if (!checkpoint.tokenizer_path().empty()) {
    if (absl::Status status =
            Take("tokenizer", Tokenizer::Load(checkpoint.tokenizer_path()), pipeline.tokenizer);
        !status.ok()) {
      return status;
    }
    part.End("tokenizer");
  }
  // First, because what replicas take of the host depends on it.
  DivideExpertsIfNeeded(options.device_memory_bytes, planned);
  PlanLimits limits{options.device_memory_bytes, {}};
  const bool host_is_device = options.device.is_cpu();
  uint64_t host_bytes = options.host_memory_bytes;
  if (const uint64_t replicas = ReplicaHostBytes(planned, host_is_device); host_bytes > 0) {
    host_bytes = host_bytes > replicas ? host_bytes - replicas : 1;
  }
  // On a CPU jobs of other shapes than the default one may fit, and weights are resident.
  if (!host_is_device) limits.host.available_bytes = host_bytes;
  std::vector<ResidencyPolicy> policies = FirstPolicies(planned, limits);
  if (host_bytes > 0) {
    absl::Status status = FitHostMemory(planned, {host_bytes, host_is_device}, policies);
    if (!status.ok()) return status;
  }
  const std::vector<std::shared_ptr<const WeightSource>> sources = SourcesOf(kept);
  std::vector<Place> places;
  for (size_t i = 0; i < policies.size(); ++i) {
    places.push_back(MakePlace(policies[i], options, sources[i]));
  }

  // While this thread loads to the first device, the others load to theirs.
  ReplicaLoading replica_loading(
      checkpoint, planned, options.peers, options.peer_counters, options.dtype,
      DecodesTogether(planned) ? std::optional(options.vae_precision) : std::nullopt, options.stop);
  if (absl::Status status = Take(
          "text_encoder",
          LoadUmt5(checkpoint.text_encoder(), checkpoint.text_encoder_config(),
                   {places.front().device, options.dtype, places.front().weights, options.stop}),
          pipeline.text_encoder);
      !status.ok()) {
    return status;
  }
  pipeline.text_encoder_weights = places.front().weights;
  part.End(NameOf(ModelComponent::kTextEncoder), pipeline.text_encoder->WeightBytes());
  std::vector<std::unique_ptr<RankTransformer>> transformers(
      static_cast<size_t>(checkpoint.num_experts()));
  for (int i = 0; i < checkpoint.num_experts(); ++i) {
    const Place& place = places[i + 1];
    Expert& expert = pipeline.experts.emplace_back();
    expert.role = roles[i];
    expert.component = TransformerComponent(i);
    if (!HoldsExpert(planned, 0, static_cast<size_t>(i))) continue;
    expert.weights = place.weights;
    expert.device = place.device;
    if (absl::Status status =
            Take(NameOf(expert.component),
                 LoadWanTransformer(
                     checkpoint.transformer(i), checkpoint.transformer_config(i),
                     {.device = place.device,
                      .dtype = options.dtype,
                      .weights = place.weights,
                      .stop = options.stop,
                      .graphs = planned.records_forwards && !place.device.is_cpu() ? options.graphs
                                                                                   : nullptr}),
                 transformers[i]);
        !status.ok()) {
      return status;
    }
    part.End(NameOf(expert.component), transformers[i]->WeightBytes());
  }
  absl::StatusOr<std::vector<LoadedReplicas>> replicas = replica_loading.Finish();
  if (!replicas.ok()) return replicas.status();
  AddTransformers(*replicas, options, planned, transformers, pipeline.experts);
  for (size_t i = 0; i < pipeline.experts.size(); ++i) {
    places[i + 1].device = pipeline.experts[i].device;
    places[i + 1].weights = pipeline.experts[i].weights;
  }
  if (!options.peers.empty()) part.End("replicas");
  loras->AddTo(pipeline.experts, options.stop);
  if (!spec.loras.empty()) part.End("loras");
  if (absl::Status status =
          Take("vae",
               LoadWanVae(checkpoint.vae(), checkpoint.vae_config(),
                          {places.back().device, options.vae_precision, places.back().weights,
                           options.stop, options.counters.exchanges}),
               pipeline.vae);
      !status.ok()) {
    return status;
  }
  pipeline.vae_weights = places.back().weights;
  if (DecodesTogether(planned)) {
    std::vector<std::unique_ptr<VideoAutoencoder>> members;
    members.push_back(std::move(pipeline.vae));
    for (LoadedReplicas& replica : *replicas) members.push_back(std::move(replica.vae));
    pipeline.vae = MakeGroupVae(std::move(members));
  }
  part.End(NameOf(ModelComponent::kVae), pipeline.vae->WeightBytes());

  for (const Place& place : places) {
    model->weights.push_back(place.moves ? place.weights : nullptr);
  }
  model->description = Describe(spec, checkpoint, pipeline, places, options);
  model->description.loras = loras->Describe();
  // "loras/" is no folder of a checkpoint.
  std::vector<ModelFile>& files = model->description.files;
  std::merge(checkpoint.files().begin(), checkpoint.files().end(), loras->files().begin(),
             loras->files().end(), std::back_inserter(files),
             [](const ModelFile& a, const ModelFile& b) { return a.name < b.name; });
  return model;
}

}  // namespace wan
