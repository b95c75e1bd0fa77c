// Checks whether the host has room for a model's weights there.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "engine/api/residency.h"
#include "engine/planning/planned_model.h"

namespace wan {

// The host's memory when a model is about to be loaded.
struct HostForLoading {
  uint64_t available_bytes = 0;  // what the process may still take
  // True on a CPU device: every weight that is loaded fills host memory.
  bool is_device = false;
};

// Checks that the host has room for the weights that wait or compute there, for the LoRAs, and for
// the copies from which patched experts are restored. On a CPU device all weights compute there,
// those of policies host, stream and disk one component at a time. `policies` has the policy with
// which each component is loaded. FAILED_PRECONDITION, reason HOST_MEMORY_EXHAUSTED, says how much
// is needed, how much is available and what would help. It is checked before loading because a
// process that pins or fills more than there is gets killed.
absl::Status CheckHostMemory(const PlannedModel& model, std::span<const ResidencyPolicy> policies,
                             const HostForLoading& host);

// The same, but where the host has no room, components whose configured policy is kAuto get the
// policy kDisk in `policies`, so that they are read again for each job. The status is that of the
// most frugal policies; after an error `policies` is unchanged.
absl::Status FitHostMemory(const PlannedModel& model, const HostForLoading& host,
                           std::vector<ResidencyPolicy>& policies);

}  // namespace wan
