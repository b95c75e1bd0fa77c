// The part of planning that is about memory: the size of the latents, where weights live, and
// whether a job fits. All functions are pure.
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

// Up to this many tokens a batch of two is faster than two forwards; beyond, one forward fills the
// device. GuidanceBatching::kAuto decides by it.
inline constexpr int64_t kMaxTokensBatched = 4096;

// Returns the shape [C, T, H, W] of the latents of a video.
std::vector<int64_t> LatentShape(const PlannedModel& model, const VideoShape& shape);

// Returns the number of transformer tokens for latents of this shape.
int64_t CountTokens(const PlannedModel& model, const std::vector<int64_t>& latent_shape);

// Returns the index of StepPlan::expert among the model's experts.
size_t ExpertIndex(ExpertRole expert);

// Decides the members of `plan` that are about latents and memory. Its request, shape and steps
// must be decided. Returns nullopt if the model's components are not known. INVALID_ARGUMENT, which
// says what would fit, if the job does not.
absl::StatusOr<std::optional<ResidencyChoice>> PlanMemory(const PlannedModel& model,
                                                          const InspectedRequest& inspected,
                                                          const PlanLimits& limits,
                                                          GenerationPlan& plan);

}  // namespace wan
