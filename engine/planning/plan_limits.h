// The memory that a plan may count on.
#pragma once

#include <cstdint>

namespace wan {

struct PlanLimits {
  // What a job may hold of the device's memory, weights included, in bytes; 0: unknown, and then
  // everything is resident and nothing refused.
  uint64_t device_memory_bytes = 0;
};

}  // namespace wan
