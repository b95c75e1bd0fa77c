// Whether the host has room for what a model keeps there.
#pragma once

#include <cstdint>
#include <span>

#include "absl/status/status.h"
#include "engine/api/residency.h"
#include "engine/planning/planned_model.h"

namespace wan {

// Checks that the host has room for the weights that wait or compute there and for LoRAs, with the
// copy of the experts' weights from which a job's end restores them. `policies` say where each
// component is loaded to. Locked memory is not swapped, and pinning more than there is gets the
// process killed. FAILED_PRECONDITION says how much is missing.
absl::Status CheckHostMemory(const PlannedModel& model, std::span<const ResidencyPolicy> policies,
                             uint64_t available_bytes);

}  // namespace wan
