// Divides a GPU's memory between jobs and everything that is outside LibTorch's allocator.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"

namespace wan {

// Bytes of device memory that a process uses outside the allocator: the driver's context, and the
// kernels of LibTorch, cuBLAS and cuDNN.
inline constexpr uint64_t kOutsideAllocatorBytes = uint64_t{1} << 30;
// The part of these bytes that kernels take. The driver loads a kernel when it is first called, so
// this part is not in use at the start.
inline constexpr uint64_t kLateKernelBytes = uint64_t{1} << 29;

struct DeviceBudget {
  // The limit to set for the allocator; 0: no limit.
  uint64_t allocator_bytes = 0;
  // The memory for a job's weights and activations (PlanLimits::device_memory_bytes).
  uint64_t job_bytes = 0;
};

// `free_bytes` is the free memory once the driver's context exists. `limit` is the total that the
// process may use, including that context (0: everything). INVALID_ARGUMENT if the limit leaves too
// little. The function is pure.
absl::StatusOr<DeviceBudget> ShareDeviceMemory(uint64_t free_bytes, uint64_t limit);

// Returns the bytes of a GPU that jobs may use now, never 0. `free_bytes` is the driver's free
// memory; `reserved_bytes` is the memory that the process's allocator holds. The function sets
// nothing aside for kernels, because loaded kernels already reduce `free_bytes`.
uint64_t PresentJobBytes(uint64_t free_bytes, uint64_t reserved_bytes);

}  // namespace wan
