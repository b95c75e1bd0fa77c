// Makes the GenerationPlan of a request. No other code decides sizes, frames, timesteps, stages and
// their work.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "engine/api/generation.h"
#include "engine/planning/inspected_request.h"
#include "engine/planning/plan_limits.h"
#include "engine/planning/planned_model.h"

namespace wan {

// The function is pure; any thread may call it. Fills the request's unset fields with the model's
// defaults. An unset or negative seed becomes `drawn_seed`.
GenerationRequest ResolveRequest(GenerationRequest request, const PlannedModel& model,
                                 int64_t drawn_seed);

// The function is pure; any thread may call it. `resolved` comes from ResolveRequest, `inspected`
// from inspecting that request. INVALID_ARGUMENT with every violation (FieldViolationsOf) if the
// request is wrong or does not fit the limits.
absl::StatusOr<GenerationPlan> MakePlan(const GenerationRequest& resolved,
                                        const PlannedModel& model,
                                        const InspectedRequest& inspected,
                                        const PlanLimits& limits);

}  // namespace wan
