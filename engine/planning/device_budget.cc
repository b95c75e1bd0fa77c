#include "engine/planning/device_budget.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace wan {

absl::StatusOr<DeviceBudget> ShareDeviceMemory(uint64_t free_bytes, uint64_t limit) {
  if (limit > 0 && limit < 2 * kOutsideAllocatorBytes) {
    return absl::InvalidArgumentError(absl::StrCat(
        "device_memory_limit is ", limit, " bytes; must be at least ", 2 * kOutsideAllocatorBytes,
        " bytes, because the driver and its libraries take ", kOutsideAllocatorBytes, " of them"));
  }
  DeviceBudget budget;
  uint64_t usable = free_bytes - std::min(free_bytes, kLateKernelBytes);
  if (limit > 0 && limit - kOutsideAllocatorBytes < usable) {
    budget.allocator_bytes = limit - kOutsideAllocatorBytes;
    usable = budget.allocator_bytes;
  }
  budget.job_bytes = PresentJobBytes(usable, 0);
  return budget;
}

uint64_t PresentJobBytes(uint64_t free_bytes, uint64_t reserved_bytes) {
  const uint64_t usable = free_bytes + reserved_bytes;
  // Leave 2 % unused, because the allocator's memory becomes fragmented. The result is never 0,
  // because callers read 0 as unknown.
  return std::max<uint64_t>(usable - usable / 50, 1);
}

}  // namespace wan
