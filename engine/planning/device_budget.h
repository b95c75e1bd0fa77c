// Divides a card's memory between jobs and everything outside LibTorch's allocator.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"

namespace wan {

// Device memory that a process uses outside the allocator: the driver's context and the kernels of
// LibTorch, cuBLAS and cuDNN.
inline constexpr uint64_t kOutsideAllocatorBytes = uint64_t{1} << 30;
// The share of kernels in it. A kernel is loaded when it is first called.
inline constexpr uint64_t kLateKernelBytes = uint64_t{1} << 29;

struct DeviceBudget {
  // Limit of the allocator; 0: no limit.
  uint64_t allocator_bytes = 0;
  // Memory for a job's weights and activations: PlanLimits::device_memory_bytes.
  uint64_t job_bytes = 0;
};

// `free_bytes` is free memory after the driver's context was created. `limit` is what the process
// may use in total, including the context (0: everything). INVALID_ARGUMENT if the limit leaves too
// little. A pure function.
absl::StatusOr<DeviceBudget> ShareDeviceMemory(uint64_t free_bytes, uint64_t limit);

// Returns the bytes that jobs may use of a GPU now, never 0. The driver has `free_bytes` free, and
// the process's allocator holds `reserved_bytes`. Nothing is set aside for kernels, because loaded
// ones are no longer free.
uint64_t PresentJobBytes(uint64_t free_bytes, uint64_t reserved_bytes);

}  // namespace wan
