// The memory that a plan may count on, on the device and on the host.
#pragma once

#include <cstdint>
#include <vector>

namespace wan {

// Weights of another model that leave the device when a job needs the room.
struct MovableWeights {
  uint64_t device_bytes = 0;  // held of the device now
  uint64_t pinned_bytes = 0;  // host memory that parking them takes; those with a copy take none
};

// The limits of the host. A job that would exceed them is refused, because a process that pins or
// fills more memory than its control group leaves is killed.
struct HostLimits {
  // Bytes that a job may add to what the process holds already; 0: unknown, and no job is refused.
  uint64_t available_bytes = 0;
  // True on a CPU device: weights and activations fill host memory.
  bool is_device = false;
  // For the job's own model: bytes of weights on the device (used only if is_device), and of each
  // component's copy in host memory. Empty: there are no copies.
  uint64_t weights_on_device = 0;
  std::vector<uint64_t> copies;
  // Weights of the other models, in the order in which they are parked.
  std::vector<MovableWeights> others;
};

struct PlanLimits {
  // Most device memory that a job may hold, weights included, in bytes; 0: unknown, and then all
  // weights are resident and no job is refused.
  uint64_t device_memory_bytes = 0;
  HostLimits host = {};
};

}  // namespace wan
