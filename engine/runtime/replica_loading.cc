#include "engine/runtime/replica_loading.h"

#include <ATen/DeviceAccelerator.h>

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/device/thread_device.h"
#include "engine/device/torch_errors.h"
#include "engine/models/wan/transformer.h"
#include "engine/models/wan/vae.h"

namespace wan {
namespace {

bool IsExpert(const PlannedModel& planned, size_t component) {
  return component > 0 && component + 1 < planned.components.size();
}

}  // namespace

ReplicaLoading::ReplicaLoading(std::vector<std::shared_ptr<const WeightSource>> sources,
                               const Checkpoint& checkpoint, const PlannedModel& planned,
                               const LoadOptions& options)
    : sources_(std::move(sources)),
      checkpoint_(checkpoint),
      planned_(planned),
      options_(options),
      on_stop_(options.stop, [this] { stop_.request_stop(); }),
      replicas_(options.peers.size()),
      statuses_(options.peers.size()) {
  for (size_t i = 0; i < options.peers.size(); ++i) {
    threads_.emplace_back([this, i] {
      statuses_[i] = CatchTorchErrors(absl::StrCat("loading to ", options_.peers[i].str()),
                                      [&] { return Load(i, replicas_[i]); });
    });
  }
}

ReplicaLoading::~ReplicaLoading() {
  stop_.request_stop();
  for (std::thread& thread : threads_) thread.join();
}

absl::Status ReplicaLoading::Load(size_t peer, LoadedReplicas& replicas) const {
  const c10::Device device = options_.peers[peer];
  const DeviceCounters counters =
      options_.peer_counters.empty() ? DeviceCounters() : options_.peer_counters[peer];
  const auto named = [device](const absl::Status& status) {
    return absl::Status(status.code(), absl::StrCat("loading to ", device.str(), ": ",
                                                    std::string(status.message())));
  };
  const auto weights = [&](size_t component) {
    auto made = std::make_shared<ComponentWeights>(
        MakeWeightMover(device), ComponentWeights::Home::kDevice, sources_[component]);
    if (!device.is_cpu()) made->CountIn(counters.weights);
    return made;
  };
  UseDeviceInThread(device);
  for (int i = 0; i < checkpoint_.num_experts(); ++i) {
    LoadedReplica& replica = replicas.experts.emplace_back();
    if (!HoldsExpert(planned_, peer + 1, static_cast<size_t>(i))) continue;
    replica.weights = weights(static_cast<size_t>(i) + 1);
    absl::StatusOr<std::unique_ptr<RankTransformer>> loaded =
        LoadWanTransformer(checkpoint_.transformer(i), checkpoint_.transformer_config(i),
                           {.device = device,
                            .dtype = options_.dtype,
                            .weights = replica.weights,
                            .stop = stop_.get_token(),
                            .eight_bit_weights = options_.engine.eight_bit_weights.transformers,
                            .exact_blocks = planned_.ExactBlocks()});
    if (!loaded.ok()) return named(loaded.status());
    replica.transformer = *std::move(loaded);
  }
  if (DecodesTogether(planned_)) {
    absl::StatusOr<std::unique_ptr<VideoAutoencoder>> vae =
        LoadWanVae(checkpoint_.vae(), checkpoint_.vae_config(),
                   {.device = device,
                    .weights = weights(planned_.components.size() - 1),
                    .stop = stop_.get_token(),
                    .exchanges = counters.exchanges});
    if (!vae.ok()) return named(vae.status());
    replicas.vae = *std::move(vae);
  }
  if (!device.is_cpu()) at::accelerator::synchronizeDevice(device.index());
  return absl::OkStatus();
}

absl::StatusOr<std::vector<LoadedReplicas>> ReplicaLoading::Finish() {
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
  for (const absl::Status& status : statuses_) {
    if (!status.ok()) return status;
  }
  return std::move(replicas_);
}

absl::Status PlanForGroup(int64_t ranks, PlannedModel& planned) {
  planned.ranks = ranks;
  if (ranks == 1) return absl::OkStatus();
  for (size_t i = 0; i < planned.components.size(); ++i) {
    PlannedComponent& component = planned.components[i];
    if (component.component == ModelComponent::kVae && component.policy == ResidencyPolicy::kAuto) {
      component.policy = ResidencyPolicy::kResident;
    }
    if (!IsExpert(planned, i)) continue;
    if (component.policy != ResidencyPolicy::kAuto &&
        component.policy != ResidencyPolicy::kResident) {
      return absl::InvalidArgumentError(
          absl::StrCat("the residency policy of ", std::string(NameOf(component.component)), " is ",
                       std::string(ResidencyPolicyName(component.policy)),
                       "; must be auto or resident in a group of ", ranks,
                       " devices, because each of them keeps the weights of the transformers"));
    }
    component.policy = ResidencyPolicy::kResident;
  }
  return absl::OkStatus();
}

void DivideExperts(PlannedModel& planned) {
  planned.divides_experts = true;
  planned.components[1].elsewhere = true;
}

bool HoldsExpert(const PlannedModel& planned, size_t place, size_t expert) {
  if (!planned.divides_experts) return true;
  // The first device also has all other components, so it belongs to the smaller half.
  const bool in_first_half = place < static_cast<size_t>(planned.ranks) / 2;
  return in_first_half == (expert == 1);
}

bool DecodesTogether(const PlannedModel& planned) {
  return planned.ranks > 1 && planned.components.back().policy == ResidencyPolicy::kResident;
}

uint64_t ReplicaHostBytes(const PlannedModel& planned, bool device_is_host) {
  const auto ranks = static_cast<size_t>(planned.ranks);
  uint64_t bytes = 0;
  if (device_is_host && DecodesTogether(planned)) {
    bytes += planned.components.back().bytes * (ranks - 1);
  }
  for (size_t i = 0; i < planned.components.size(); ++i) {
    if (!IsExpert(planned, i)) continue;
    uint64_t replicas = 0;
    for (size_t place = 1; place < ranks; ++place) {
      replicas += static_cast<uint64_t>(HoldsExpert(planned, place, i - 1));
    }
    bool has_lora = false;
    for (const PlannedLora& lora : planned.loras) {
      has_lora = has_lora || (i <= lora.experts.size() && lora.experts[i - 1].has_value());
    }
    bytes += replicas * planned.components[i].bytes *
             (static_cast<uint64_t>(device_is_host) + static_cast<uint64_t>(has_lora));
  }
  return bytes;
}

}  // namespace wan
