// Checks the latents that a request brings, and decides with which step it begins. Pure functions.
#pragma once

#include <optional>
#include <vector>

#include "engine/api/errors.h"
#include "engine/api/generation.h"
#include "engine/planning/inspected_request.h"
#include "engine/planning/planned_model.h"

namespace wan {

// Returns whether the request only decodes its latents and computes no steps.
bool OnlyDecodes(const GenerationRequest& request);

// Returns the violations of initial_latents, latents and strength, and of fields that cannot be
// combined with them. Checks the latents' shapes if `shape`, the video's size, is known.
std::vector<FieldViolation> CheckLatents(const GenerationRequest& request,
                                         const PlannedModel& model,
                                         const InspectedRequest& inspected,
                                         const std::optional<VideoShape>& shape);

// Sets first_step of a plan that has the whole schedule: the first step whose noise level is at
// most the request's strength; 0 without a strength. Returns a violation if the strength is below
// the noise level of every step.
std::optional<FieldViolation> SetFirstStep(GenerationPlan& plan);

// Removes the steps before first_step and their noise levels from the plan. The plan's other
// members then describe the remaining steps.
void DropEarlierSteps(GenerationPlan& plan);

}  // namespace wan
