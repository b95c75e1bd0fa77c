// Loads the components that the other devices of a group have: the transformers and, if all devices
// decode, the autoencoder.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <stop_token>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/checkpoint/checkpoint.h"
#include "engine/checkpoint/weight_source.h"
#include "engine/models/video_autoencoder.h"
#include "engine/models/video_transformer.h"
#include "engine/planning/planned_model.h"
#include "engine/runtime/load_options.h"
#include "engine/weights/component_weights.h"

namespace wan {

// An expert's transformer and weights on one device.
struct LoadedReplica {
  std::unique_ptr<RankTransformer> transformer;
  std::shared_ptr<ComponentWeights> weights;
};

// The components of one of the other devices.
struct LoadedReplicas {
  std::vector<LoadedReplica> experts;
  std::unique_ptr<VideoAutoencoder> vae;  // null: this device does not decode
};

// Starts one thread per other device. A thread loads the components that `planned` assigns to its
// device, while the calling thread loads to the first device. The destructor stops loading that is
// not finished.
class ReplicaLoading {
 public:
  // Loads a copy of the model's weights to each peer of `options`. `sources` are the weight sources
  // of PlannedModel::components; the loaded weights keep them. The other arguments must outlive the
  // object. A stop request ends the loading with CANCELLED.
  ReplicaLoading(std::vector<std::shared_ptr<const WeightSource>> sources,
                 const Checkpoint& checkpoint, const PlannedModel& planned,
                 const LoadOptions& options);
  ~ReplicaLoading();
  ReplicaLoading(const ReplicaLoading&) = delete;
  ReplicaLoading& operator=(const ReplicaLoading&) = delete;

  // Waits for the threads. Returns, for each device in order, one replica per expert; null if the
  // device does not have that expert. Returns the errors of LoadWanTransformer, LoadWanVae and
  // CatchTorchErrors, with the device's name. Call the function only once.
  absl::StatusOr<std::vector<LoadedReplicas>> Finish();

 private:
  // Loads all components of one peer.
  absl::Status Load(size_t peer, LoadedReplicas& replicas) const;

  const std::vector<std::shared_ptr<const WeightSource>> sources_;
  const Checkpoint& checkpoint_;
  const PlannedModel& planned_;
  const LoadOptions& options_;
  std::stop_source stop_;
  const std::stop_callback<std::function<void()>> on_stop_;
  std::vector<LoadedReplicas> replicas_;  // each loading thread writes only its own entry
  std::vector<absl::Status> statuses_;
  std::vector<std::thread> threads_;
};

// Adapts the policies to a group of `ranks` devices: transformers become resident on all of them,
// and so does an autoencoder whose policy is auto. INVALID_ARGUMENT if the operator chose a policy
// other than auto or resident for a transformer.
absl::Status PlanForGroup(int64_t ranks, PlannedModel& planned);

// Assigns one of the two experts to each half of the devices, for cards that cannot hold both
// experts. Each step is then computed by the half that has the step's expert.
void DivideExperts(PlannedModel& planned);

// Returns whether device number `place` (from 0) of the group has the weights of `expert`.
bool HoldsExpert(const PlannedModel& planned, size_t place, size_t expert);

// Returns whether all devices of the group have the autoencoder's weights, so that they decode
// together.
bool DecodesTogether(const PlannedModel& planned);

// Returns the bytes of host memory that a group's replicas take: the copies that restore what LoRAs
// change, and on a CPU all weights.
uint64_t ReplicaHostBytes(const PlannedModel& planned, bool device_is_host);

}  // namespace wan
