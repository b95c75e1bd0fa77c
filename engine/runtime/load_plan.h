// Decides, before any weight is read, how a model is loaded.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "engine/api/residency.h"
#include "engine/checkpoint/checkpoint.h"
#include "engine/planning/planned_model.h"
#include "engine/runtime/load_options.h"

namespace wan {

// Describes the checkpoint as jobs on the devices of `options` are planned; its LoRAs are for the
// caller to add. INVALID_ARGUMENT if a configured policy does not suit a group; DATA_LOSS if no
// request could have the checkpoint's own defaults.
absl::StatusOr<PlannedModel> PlanModel(const Checkpoint& checkpoint, const LoadOptions& options);

// Decides whether the experts of a group are divided (DivideExperts), and returns the policy with
// which each component is loaded: that of a job of the model's default shape, or a more frugal one
// if that job does not fit. FAILED_PRECONDITION (HOST_MEMORY_EXHAUSTED) if the host has no room for
// the model.
absl::StatusOr<std::vector<ResidencyPolicy>> PlanResidency(const LoadOptions& options,
                                                           PlannedModel& planned);

}  // namespace wan
