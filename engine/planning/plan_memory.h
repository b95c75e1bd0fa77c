// The part of planning that is about memory: sizes of latents, where weights live, what does not
// fit.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/api/generation.h"
#include "engine/planning/inspected_request.h"
#include "engine/planning/plan_limits.h"
#include "engine/planning/planned_model.h"
#include "engine/planning/residency_plan.h"

namespace wan {

// Up to here a batch of two is faster than two forwards; beyond, one forward fills the device.
inline constexpr int64_t kMaxTokensBatched = 4096;

// [C, T, H, W]
std::vector<int64_t> LatentShape(const PlannedModel& model, const VideoShape& shape);

// Transformer tokens of latents of that shape.
int64_t CountTokens(const PlannedModel& model, const std::vector<int64_t>& latent_shape);

// The place of StepPlan::expert among the model's experts.
size_t ExpertIndex(ExpertRole expert);

// Decides the members of `plan` that are about memory; request, shape and steps are decided
// already. Nullopt if the model's components are not known. INVALID_ARGUMENT, with what would fit,
// if nothing does.
absl::StatusOr<std::optional<ResidencyChoice>> PlanMemory(const PlannedModel& model,
                                                          const InspectedRequest& inspected,
                                                          const PlanLimits& limits,
                                                          GenerationPlan& plan);

}  // namespace wan
