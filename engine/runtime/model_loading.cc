#include "engine/runtime/model_loading.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/checkpoint/checkpoint.h"
#include "engine/group/thread_communicator.h"
#include "engine/models/group_transformer.h"
#include "engine/models/wan/transformer.h"
#include "engine/models/wan/umt5.h"
#include "engine/models/wan/vae.h"
#include "engine/runtime/load_plan.h"
#include "engine/runtime/loading_part.h"
#include "engine/runtime/lora_loading.h"
#include "engine/runtime/model_description.h"
#include "engine/runtime/replica_loading.h"

namespace wan {
namespace {

// The device on which a component is built, and whether its weights can leave that device.
struct Place {
  at::Device device;
  std::shared_ptr<ComponentWeights> weights;
  bool moves = true;  // false: the component's policy says that it computes on the CPU
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

// The ComponentWeights keep the checkpoint's files open while the model is loaded, because later
// jobs may read the weights again.
Place MakePlace(ResidencyPolicy policy, const LoadOptions& options,
                std::shared_ptr<const WeightSource> source) {
  const bool moves = policy != ResidencyPolicy::kCpu;
  const at::Device device = moves ? options.device : at::kCPU;
  auto weights = std::make_shared<ComponentWeights>(MakeWeightMover(device), HomeOf(policy),
                                                    std::move(source));
  if (!device.is_cpu()) weights->CountIn(options.counters.weights);
  return {device, std::move(weights), moves};
}

// Returns each component's source, in the order of PlannedModel::components. Each source keeps the
// checkpoint alive.
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

// Moves what a Load function returned to `slot`, a unique_ptr or shared_ptr. If the Load function
// returned an error, which names file and tensor, prefixes the component's name.
template <typename Loaded, typename Slot>
absl::Status Take(std::string_view part, absl::StatusOr<std::unique_ptr<Loaded>> loaded,
                  Slot& slot) {
  if (!loaded.ok()) {
    return absl::Status(loaded.status().code(),
                        absl::StrCat(std::string(part), ": ", loaded.status().message()));
  }
  slot = *std::move(loaded);
  return absl::OkStatus();
}

// Makes the experts' transformers from the parts that were loaded to all devices.
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
    std::vector<GroupRank> ranks;
    if (transformers[i] != nullptr) {
      ranks.push_back({options.device, std::move(transformers[i]), options.counters.exchanges});
    }
    for (size_t peer = 0; peer < options.peers.size(); ++peer) {
      if (!HoldsExpert(planned, peer + 1, i)) continue;
      LoadedReplica& replica = replicas[peer].experts[i];
      if (ranks.empty()) {
        expert.device = options.peers[peer];
        expert.weights = std::move(replica.weights);
      } else {
        expert.replicas.push_back({options.peers[peer], std::move(replica.weights)});
      }
      ranks.push_back(
          {options.peers[peer], std::move(replica.transformer),
           options.peer_counters.empty() ? nullptr : options.peer_counters[peer].exchanges});
    }
    expert.transformer = MakeGroupTransformer(std::move(ranks), &MakeThreadGroup);
  }
}

// Loads one model.
class ModelLoading {
 public:
  // Both arguments must outlive the object.
  ModelLoading(const ModelSpec& spec, const LoadOptions& options)
      : spec_(spec), options_(options), part_(options.span) {}

  // Opens the files and plans the model's memory.
  absl::Status Open();
  // Decides where each component's weights are, and starts the threads that load to the group's
  // other devices.
  absl::Status PlaceComponents();
  absl::Status LoadTextEncoder();
  // Loads the transformers and their LoRAs on all devices of the group.
  absl::Status LoadExperts();
  absl::Status LoadAutoencoder();
  std::shared_ptr<LoadedModel> Finish();

 private:
  // Loads the transformer of an expert to the first device; null if that device does not have the
  // expert.
  absl::Status LoadTransformer(int expert, std::unique_ptr<RankTransformer>& transformer);

  const ModelSpec& spec_;
  const LoadOptions& options_;
  LoadingPart part_;
  const std::shared_ptr<LoadedModel> model_ = std::make_shared<LoadedModel>();
  PipelineModel& pipeline_ = model_->pipeline;
  PlannedModel& planned_ = pipeline_.planned;
  std::shared_ptr<const Checkpoint> checkpoint_;
  std::shared_ptr<OpenedLoras> loras_;
  std::vector<Place> places_;  // one place per PlannedModel::components
  std::vector<LoadedReplicas> replicas_;
  // The last member, because its threads use the others.
  std::optional<ReplicaLoading> replica_loading_;
};

absl::Status ModelLoading::Open() {
  absl::StatusOr<std::unique_ptr<Checkpoint>> opened = Checkpoint::Open(spec_.path);
  if (!opened.ok()) return opened.status();
  checkpoint_ = *std::move(opened);
  pipeline_.device = options_.device;
  absl::StatusOr<PlannedModel> planned = PlanModel(*checkpoint_, options_);
  if (!planned.ok()) return planned.status();
  planned_ = *std::move(planned);
  absl::StatusOr<OpenedLoras> loras =
      OpenedLoras::Open(spec_.loras, *checkpoint_, *planned_.family, options_.stop);
  if (!loras.ok()) return loras.status();
  loras_ = std::make_shared<OpenedLoras>(*std::move(loras));
  planned_.loras = loras_->Plan();
  part_.End("checkpoint");

  if (checkpoint_->tokenizer_path().empty()) return absl::OkStatus();
  absl::Status status =
      Take("tokenizer", Tokenizer::Load(checkpoint_->tokenizer_path()), pipeline_.tokenizer);
  if (status.ok()) part_.End("tokenizer");
  return status;
}

absl::Status ModelLoading::PlaceComponents() {
  const absl::StatusOr<std::vector<ResidencyPolicy>> policies = PlanResidency(options_, planned_);
  if (!policies.ok()) return policies.status();
  const std::vector<std::shared_ptr<const WeightSource>> sources = SourcesOf(checkpoint_);
  for (size_t i = 0; i < policies->size(); ++i) {
    places_.push_back(MakePlace((*policies)[i], options_, sources[i]));
  }
  // The object's threads load to the group's other devices while the calling thread loads to the
  // first device.
  replica_loading_.emplace(sources, *checkpoint_, planned_, options_);
  return absl::OkStatus();
}

absl::Status ModelLoading::LoadTextEncoder() {
  const Place& place = places_.front();
  absl::Status status =
      Take(NameOf(ModelComponent::kTextEncoder),
           LoadUmt5(checkpoint_->text_encoder(), checkpoint_->text_encoder_config(),
                    {.device = place.device,
                     .dtype = options_.dtype,
                     .weights = place.weights,
                     .stop = options_.stop,
                     .eight_bit_weights = options_.engine.eight_bit_weights.text_encoder}),
           pipeline_.text_encoder);
  if (!status.ok()) return status;
  pipeline_.text_encoder_weights = place.weights;
  part_.End(NameOf(ModelComponent::kTextEncoder), pipeline_.text_encoder->WeightBytes());
  return absl::OkStatus();
}

absl::Status ModelLoading::LoadTransformer(int expert,
                                           std::unique_ptr<RankTransformer>& transformer) {
  const Place& place = places_[expert + 1];
  const bool records = planned_.records_forwards && !place.device.is_cpu();
  absl::Status status = Take(
      NameOf(TransformerComponent(expert)),
      LoadWanTransformer(checkpoint_->transformer(expert), checkpoint_->transformer_config(expert),
                         {.device = place.device,
                          .dtype = options_.dtype,
                          .weights = place.weights,
                          .stop = options_.stop,
                          .graphs = records ? options_.graphs : nullptr,
                          .eight_bit_weights = options_.engine.eight_bit_weights.transformers,
                          .exact_blocks = planned_.ExactBlocks()}),
      transformer);
  if (status.ok()) part_.End(NameOf(TransformerComponent(expert)), transformer->WeightBytes());
  return status;
}

absl::Status ModelLoading::LoadExperts() {
  std::vector<std::unique_ptr<RankTransformer>> transformers(
      static_cast<size_t>(checkpoint_->num_experts()));
  for (int i = 0; i < checkpoint_->num_experts(); ++i) {
    Expert& expert = pipeline_.experts.emplace_back();
    expert.role = planned_.family->experts[i];
    expert.component = TransformerComponent(i);
    if (!HoldsExpert(planned_, 0, static_cast<size_t>(i))) continue;
    expert.weights = places_[i + 1].weights;
    expert.device = places_[i + 1].device;
    if (absl::Status status = LoadTransformer(i, transformers[i]); !status.ok()) return status;
  }
  absl::StatusOr<std::vector<LoadedReplicas>> replicas = replica_loading_->Finish();
  if (!replicas.ok()) return replicas.status();
  replicas_ = *std::move(replicas);
  AddTransformers(replicas_, options_, planned_, transformers, pipeline_.experts);
  for (size_t i = 0; i < pipeline_.experts.size(); ++i) {
    places_[i + 1].device = pipeline_.experts[i].device;
    places_[i + 1].weights = pipeline_.experts[i].weights;
  }
  if (!options_.peers.empty()) part_.End("replicas");
  loras_->AddTo(pipeline_.experts, options_.stop);
  if (!spec_.loras.empty()) part_.End("loras");
  return absl::OkStatus();
}

absl::Status ModelLoading::LoadAutoencoder() {
  const Place& place = places_.back();
  std::unique_ptr<VideoAutoencoder> vae;
  absl::Status status = Take(NameOf(ModelComponent::kVae),
                             LoadWanVae(checkpoint_->vae(), checkpoint_->vae_config(),
                                        {.device = place.device,
                                         .weights = place.weights,
                                         .stop = options_.stop,
                                         .exchanges = options_.counters.exchanges}),
                             vae);
  if (!status.ok()) return status;
  pipeline_.vae_weights = place.weights;
  if (DecodesTogether(planned_)) {
    std::vector<std::unique_ptr<VideoAutoencoder>> ranks;
    ranks.push_back(std::move(vae));
    for (LoadedReplicas& replica : replicas_) ranks.push_back(std::move(replica.vae));
    vae = MakeGroupVae(std::move(ranks));
  }
  pipeline_.vae = std::move(vae);
  part_.End(NameOf(ModelComponent::kVae), pipeline_.vae->WeightBytes());
  return absl::OkStatus();
}

std::shared_ptr<LoadedModel> ModelLoading::Finish() {
  std::vector<at::Device> devices;
  for (const Place& place : places_) {
    devices.push_back(place.device);
    model_->weights.push_back(place.moves ? place.weights : nullptr);
  }
  model_->checkpoint = checkpoint_;
  model_->loras = loras_;
  model_->description = DescribeModel(spec_, *checkpoint_, *loras_, pipeline_, devices, options_);
  return model_;
}

}  // namespace

absl::Status CheckModelFiles(const ModelSpec& spec) {
  const absl::StatusOr<std::unique_ptr<Checkpoint>> checkpoint = Checkpoint::Open(spec.path);
  if (!checkpoint.ok()) return checkpoint.status();
  const ModelFamily& family = FindModelFamily((*checkpoint)->family());
  return OpenedLoras::Open(spec.loras, **checkpoint, family).status();
}

absl::StatusOr<std::shared_ptr<LoadedModel>> LoadModelFromCheckpoint(const ModelSpec& spec,
                                                                     const LoadOptions& options) {
  ModelLoading loading(spec, options);
  absl::Status status = loading.Open();
  if (status.ok()) status = loading.PlaceComponents();
  if (status.ok()) status = loading.LoadTextEncoder();
  if (status.ok()) status = loading.LoadExperts();
  if (status.ok()) status = loading.LoadAutoencoder();
  if (!status.ok()) return status;
  return loading.Finish();
}

}  // namespace wan
