// How much device and host memory a plan may use.
#pragma once

#include <cstdint>
#include <vector>

namespace wan {

// Weights of another model that can leave the device when a job needs room.
struct MovableWeights {
  uint64_t device_bytes = 0;  // bytes on the device now
  uint64_t pinned_bytes = 0;  // host memory that parking them would take; 0 if they have a copy
};

// Limits of the host. A job that would exceed them is refused, because pinning or filling more
// memory than the control group leaves gets the process killed.
struct HostLimits {
  // Bytes that a job may add to the process; 0: unknown, and no job is refused.
  uint64_t available_bytes = 0;
  // True on a CPU device: weights and activations fill host memory.
  bool is_device = false;
  // For the job's model: bytes of weights on the device (used only if is_device), and bytes of each
  // component's host copy (empty: no copies).
  uint64_t weights_on_device = 0;
  std::vector<uint64_t> copies;
  // Weights of other models, in the order in which they would be parked.
  std::vector<MovableWeights> others;
};

struct PlanLimits {
  // Most bytes of device memory for a job, including weights; 0: unknown, so all weights are
  // resident and no job is refused.
  uint64_t device_memory_bytes = 0;
  HostLimits host = {};
};

}  // namespace wan
