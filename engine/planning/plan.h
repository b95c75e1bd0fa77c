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

// Pure, for any thread. Fills every unset field with the model's default, and the seed, unless the
// request has one that is not negative, with `drawn_seed`.
GenerationRequest ResolveRequest(GenerationRequest request, const PlannedModel& model,
                                 int64_t drawn_seed);

// A pure function, for any thread. `resolved` comes from ResolveRequest, `inspected` from reading
// it. INVALID_ARGUMENT with every violation (FieldViolationsOf) if the request is wrong or does not
// fit the limits.
absl::StatusOr<GenerationPlan> MakePlan(const GenerationRequest& resolved,
                                        const PlannedModel& model,
                                        const InspectedRequest& inspected,
                                        const PlanLimits& limits);

}  // namespace wan
