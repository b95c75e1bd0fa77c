// Makes the GenerationPlan of a request. Only this code decides sizes, frames, timesteps, stages
// and their work.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "engine/api/generation.h"
#include "engine/planning/inspected_request.h"
#include "engine/planning/plan_limits.h"
#include "engine/planning/planned_model.h"

namespace wan {

// A pure function, for any thread. Fills unset fields with the model's defaults; the seed becomes
// `drawn_seed` if it is unset or negative.
GenerationRequest ResolveRequest(GenerationRequest request, const PlannedModel& model,
                                 int64_t drawn_seed);

// A pure function, for any thread. `resolved` comes from ResolveRequest, `inspected` from
// inspecting it. INVALID_ARGUMENT with every violation (FieldViolationsOf) if the request is wrong
// or does not fit the limits.
absl::StatusOr<GenerationPlan> MakePlan(const GenerationRequest& resolved,
                                        const PlannedModel& model,
                                        const InspectedRequest& inspected,
                                        const PlanLimits& limits);

}  // namespace wan
