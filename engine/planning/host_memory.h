// Checks whether a model's weights fit into host memory.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "engine/api/residency.h"
#include "engine/planning/planned_model.h"

namespace wan {

// The host's memory before a model is loaded.
struct HostForLoading {
  uint64_t available_bytes = 0;  // bytes that the process may still take
  // True on a CPU device, where all weights are in host memory.
  bool is_device = false;
};

// Checks that the host has room for all weights that are in host memory while the model is loaded:
// parked weights, weights with which the CPU computes, LoRAs, and the copies that restore patched
// experts. On a CPU device all weights are in host memory, but only the largest component with the
// policy host, stream or disk counts, because these work one at a time. `policies` has the policy
// with which each component will be loaded. FAILED_PRECONDITION (HOST_MEMORY_EXHAUSTED) says how
// much is needed and available, and what would help. Call CheckHostMemory before loading, because
// the system kills a process that pins or fills more memory than it has.
absl::Status CheckHostMemory(const PlannedModel& model, std::span<const ResidencyPolicy> policies,
                             const HostForLoading& host);

// Checks the host's memory as CheckHostMemory does. If the host has no room, changes `policies`:
// components whose configured policy is kAuto get kDisk, so that each job reads them again. Returns
// the status for the most frugal policies; if the status is an error, `policies` is unchanged.
absl::Status FitHostMemory(const PlannedModel& model, const HostForLoading& host,
                           std::vector<ResidencyPolicy>& policies);

}  // namespace wan
