// Decides, before any weight is read, how a model is loaded.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "engine/api/residency.h"
#include "engine/checkpoint/checkpoint.h"
#include "engine/planning/planned_model.h"
#include "engine/runtime/load_options.h"

namespace wan {

// Describes the checkpoint for planning jobs on the devices of `options`; the caller adds the
// LoRAs. INVALID_ARGUMENT if a configured policy is not possible in a group; DATA_LOSS if the
// checkpoint's own defaults are not a valid request.
absl::StatusOr<PlannedModel> PlanModel(const Checkpoint& checkpoint, const LoadOptions& options);

// Decides whether a group divides the experts (DivideExperts), and returns the policy with which
// each component is loaded: as in a job of the model's default shape, or more frugal if that job
// does not fit. FAILED_PRECONDITION (HOST_MEMORY_EXHAUSTED) if the model does not fit into host
// memory.
absl::StatusOr<std::vector<ResidencyPolicy>> PlanResidency(const LoadOptions& options,
                                                           PlannedModel& planned);

}  // namespace wan
