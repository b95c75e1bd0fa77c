// Divides a card's memory between the jobs and everything outside of LibTorch's allocator.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"

namespace wan {

// The device memory that a process holds besides the allocator's blocks: the driver's context and
// the kernels of LibTorch, cuBLAS and cuDNN.
inline constexpr uint64_t kOutsideAllocatorBytes = uint64_t{1} << 30;
// The part of it for kernels, which are loaded when they are first called.
inline constexpr uint64_t kLateKernelBytes = uint64_t{1} << 29;

struct DeviceBudget {
  // The limit of the allocator; 0: it may take what the device has.
  uint64_t allocator_bytes = 0;
  // For the weights and activations of a job: PlanLimits::device_memory_bytes.
  uint64_t job_bytes = 0;
};

// `free_bytes` is what the device has left once the driver's context exists. `limit` is what the
// process may use in all, context included (0: everything). INVALID_ARGUMENT if the limit leaves
// too little to work with. A pure function.
absl::StatusOr<DeviceBudget> ShareDeviceMemory(uint64_t free_bytes, uint64_t limit);

// Returns the bytes that jobs may hold of a GPU now. `free_bytes` are free at the driver,
// `reserved_bytes` are held by the process's allocator. Kernels that were loaded since the start
// are no longer free, so none are set aside. Never 0.
uint64_t PresentJobBytes(uint64_t free_bytes, uint64_t reserved_bytes);

}  // namespace wan
