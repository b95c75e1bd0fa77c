// The memory that a plan may count on, on the device and on the host.
#pragma once

#include <cstdint>
#include <vector>

namespace wan {

// Weights of another model that leave the device when a job needs the room.
struct MovableWeights {
  uint64_t device_bytes = 0;  // held of the device now
  uint64_t pinned_bytes = 0;  // host memory that parking them takes: what has no copy there yet
};

// The host's side. Locked memory is not swapped, and a process that pins or fills more than its
// control group leaves is killed, so that a job that would do so is refused.
struct HostLimits {
  // Bytes that a job may add to what the process holds already; 0: unknown, and nothing is refused.
  uint64_t available_bytes = 0;
  // True on a CPU device: weights and activations fill host memory.
  bool is_device = false;
  // Of the job's own model: the weights in device memory (counted only where is_device), and by
  // component the copies that wait in host memory. Empty: there are no copies.
  uint64_t weights_on_device = 0;
  std::vector<uint64_t> copies;
  // Of other models, in the order in which they are parked.
  std::vector<MovableWeights> others;
};

struct PlanLimits {
  // What a job may hold of the device's memory, weights included, in bytes; 0: unknown, and then
  // everything is resident and nothing refused.
  uint64_t device_memory_bytes = 0;
  HostLimits host = {};
};

}  // namespace wan
