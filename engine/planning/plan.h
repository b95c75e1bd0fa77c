// Makes the GenerationPlan of a request. Sizes, frames, timesteps, stages and their work are
// decided here and nowhere else.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "engine/api/generation.h"
#include "engine/planning/inspected_request.h"
#include "engine/planning/plan_limits.h"
#include "engine/planning/planned_model.h"

namespace wan {

// A pure function, for any thread. `drawn_seed` becomes the seed if the request has none, or a
// negative one. INVALID_ARGUMENT with every violation (FieldViolationsOf) if the request is wrong
// or does not fit the limits.
absl::StatusOr<GenerationPlan> MakePlan(const GenerationRequest& request, const PlannedModel& model,
                                        const InspectedRequest& inspected, int64_t drawn_seed,
                                        const PlanLimits& limits);

}  // namespace wan
