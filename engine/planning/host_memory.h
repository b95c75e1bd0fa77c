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
  uint64_t available_bytes = 0;  // what the process may still take
  // True on a CPU device, where all loaded weights fill host memory.
  bool is_device = false;
};

// Checks that the host has room for weights that are parked or computed with there, for LoRAs, and
// for the copies that restore patched experts. On a CPU device all weights are in host memory, but
// of components with the policies host, stream and disk only one at a time. `policies` has the
// policy with which each component is loaded. FAILED_PRECONDITION (HOST_MEMORY_EXHAUSTED) says how
// much is needed and available, and what would help. Checked before loading, because pinning or
// filling more memory than there is gets the process killed.
absl::Status CheckHostMemory(const PlannedModel& model, std::span<const ResidencyPolicy> policies,
                             const HostForLoading& host);

// The same, but if the host has no room, components whose configured policy is kAuto get kDisk in
// `policies`, so that each job reads them again. The status is for the most frugal policies; on an
// error `policies` is unchanged.
absl::Status FitHostMemory(const PlannedModel& model, const HostForLoading& host,
                           std::vector<ResidencyPolicy>& policies);

}  // namespace wan
