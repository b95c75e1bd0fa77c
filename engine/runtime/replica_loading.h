// Loads the components of a group's further devices: a model's transformers, and the autoencoder if
// all devices decode.
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
#include "engine/models/video_autoencoder.h"
#include "engine/models/video_transformer.h"
#include "engine/planning/planned_model.h"
#include "engine/runtime/load_options.h"
#include "engine/weights/component_weights.h"

namespace wan {

// One expert on one device.
struct LoadedReplica {
  std::unique_ptr<RankTransformer> transformer;
  std::shared_ptr<ComponentWeights> weights;
};

// The components of one device.
struct LoadedReplicas {
  std::vector<LoadedReplica> experts;
  std::unique_ptr<VideoAutoencoder> vae;  // null: it does not decode
};

// From construction on, a thread for each device loads there what `planned` has there, while the
// calling thread loads to the first device. The destructor ends what is not finished.
class ReplicaLoading {
 public:
  // Loads to the peers of `options`. All must outlive the object. A stop request ends the loading
  // with CANCELLED.
  ReplicaLoading(const Checkpoint& checkpoint, const PlannedModel& planned,
                 const LoadOptions& options);
  ~ReplicaLoading();
  ReplicaLoading(const ReplicaLoading&) = delete;
  ReplicaLoading& operator=(const ReplicaLoading&) = delete;

  // Waits, and returns for each device, in order, one replica of each expert, which is null if the
  // device does not have that expert. The errors name the device and are those of
  // LoadWanTransformer, LoadWanVae and CatchTorchErrors. Call it once.
  absl::StatusOr<std::vector<LoadedReplicas>> Finish();

 private:
  // Loads to this peer.
  absl::Status Load(size_t peer, LoadedReplicas& replicas) const;

  const Checkpoint& checkpoint_;
  const PlannedModel& planned_;
  const LoadOptions& options_;
  std::stop_source stop_;
  const std::stop_callback<std::function<void()>> on_stop_;
  std::vector<LoadedReplicas> replicas_;  // a thread writes its own entry
  std::vector<absl::Status> statuses_;
  std::vector<std::thread> threads_;
};

// Makes the policies those of a group of `ranks` devices: the transformers' weights are resident on
// all of them, and the autoencoder's where they are auto. INVALID_ARGUMENT if the operator has
// chosen another policy than auto or resident for a transformer.
absl::Status PlanForGroup(int64_t ranks, PlannedModel& planned);

// Plans the experts apart, one on each half of the devices: for cards that hold one of them only.
// Each step is then computed by the half that has its expert. The model must have two.
void DivideExperts(PlannedModel& planned);

// Whether a device has the weights of an expert; `place` is the device's in the group, from 0.
bool HoldsExpert(const PlannedModel& planned, size_t place, size_t expert);

// Whether all devices of the group decode: the autoencoder's weights are on all of them.
bool DecodesTogether(const PlannedModel& planned);

// Returns the host memory that the replicas of a group take, in bytes: their copies for restoring
// what LoRAs change, and on a CPU all of their weights.
uint64_t ReplicaHostBytes(const PlannedModel& planned, bool device_is_host);

}  // namespace wan
