// Checks whether the host has room for what a model keeps there.
#pragma once

#include <cstdint>
#include <span>

#include "absl/status/status.h"
#include "engine/api/residency.h"
#include "engine/planning/planned_model.h"

namespace wan {

// Checks that `available_bytes` of host memory are enough for the weights that wait or compute
// there, for the LoRAs, and for the copies from which patched experts are restored. `policies` has
// the policy with which each component is loaded. FAILED_PRECONDITION says how much is needed and
// what would help. It is checked before loading because locked memory is not swapped: pinning more
// than there is gets the process killed.
absl::Status CheckHostMemory(const PlannedModel& model, std::span<const ResidencyPolicy> policies,
                             uint64_t available_bytes);

}  // namespace wan
