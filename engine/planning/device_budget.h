// How a card's memory is shared out: between what lies outside of LibTorch's allocator and the
// jobs.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"

namespace wan {

// What a process holds of a GPU beside the allocator's blocks: the driver's context, the kernels of
// LibTorch, cuBLAS and cuDNN. Most of the context is there before the first block, kernels are
// loaded when they are first called.
inline constexpr uint64_t kOutsideAllocatorBytes = uint64_t{1} << 30;
inline constexpr uint64_t kLateKernelBytes = uint64_t{1} << 29;

struct DeviceBudget {
  // The allocator is held to this; 0: it may take what the device has.
  uint64_t allocator_bytes = 0;
  // PlanLimits::device_memory_bytes: weights and activations of a job.
  uint64_t job_bytes = 0;
};

// `free_bytes` is what the device has once the driver's context is there; `limit` is what the
// process may use in all, context included (0: everything). INVALID_ARGUMENT if the limit leaves
// nothing to work with.
absl::StatusOr<DeviceBudget> ShareDeviceMemory(uint64_t free_bytes, uint64_t limit);

}  // namespace wan
