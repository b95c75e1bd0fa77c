// From a request to a GenerationPlan: a pure function. Sizes, frames, timesteps, stages and the
// work in each are decided here and nowhere else.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "engine/api/generation.h"
#include "engine/planning/inspected_request.h"
#include "engine/planning/plan_limits.h"
#include "engine/planning/planned_model.h"

namespace wan {

// `drawn_seed` is used if the request has none (or a negative one). Errors: INVALID_ARGUMENT with
// every violation (FieldViolationsOf).
absl::StatusOr<GenerationPlan> MakePlan(const GenerationRequest& request, const PlannedModel& model,
                                        const InspectedRequest& inspected, int64_t drawn_seed,
                                        const PlanLimits& limits);

}  // namespace wan
