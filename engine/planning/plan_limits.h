// The limits of a plan's device and host memory.
#pragma once

#include <cstdint>
#include <vector>

namespace wan {

// Weights of another model that can leave the device if a job needs room.
struct MovableWeights {
  uint64_t device_bytes = 0;  // bytes that are on the device now
  uint64_t pinned_bytes = 0;  // bytes that parking would pin; 0 if the host already has a copy
};

// Limits of the host. Planning refuses a job that would exceed these limits: the system kills a
// process that pins or fills more memory than its control group has left.
struct HostLimits {
  // Bytes that a job may add to the process; 0: unknown, and no job is refused.
  uint64_t available_bytes = 0;
  // True on a CPU device, where weights and activations fill host memory.
  bool is_device = false;
  // For the job's model: the bytes of weights on the device (used only if is_device), and the bytes
  // of each component's copy in host memory (empty: no copies).
  uint64_t weights_on_device = 0;
  std::vector<uint64_t> copies;
  // Weights of other models, in the order in which they would be moved to host memory.
  std::vector<MovableWeights> others;
};

struct PlanLimits {
  // The maximum number of bytes of device memory that a job may use, including weights. 0: unknown;
  // then all weights are resident and no job is refused.
  uint64_t device_memory_bytes = 0;
  HostLimits host = {};
};

}  // namespace wan
