// Plans a job's memory: the size of the latents, where weights are, and whether the job fits.
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

// With at most this many tokens, a batch of two is faster than two forwards. With more tokens, a
// single forward already fills the device. GuidanceBatching::kAuto uses this limit.
inline constexpr int64_t kMaxTokensBatched = 4096;

// Returns the shape [C, T, H, W] of a video's latents.
std::vector<int64_t> LatentShape(const PlannedModel& model, const VideoShape& shape);

// Returns the number of transformer tokens that latents of this shape have.
int64_t CountTokens(const PlannedModel& model, const std::vector<int64_t>& latent_shape);

// Returns the index of `expert` among the model's experts.
size_t ExpertIndex(ExpertRole expert);

// Sets the members of `plan` that concern latents and memory. The plan's request, shape and steps
// must be set. Returns nullopt if the model's components are not known. If the job does not fit,
// INVALID_ARGUMENT says what would fit.
absl::StatusOr<std::optional<ResidencyChoice>> PlanMemory(const PlannedModel& model,
                                                          const InspectedRequest& inspected,
                                                          const PlanLimits& limits,
                                                          GenerationPlan& plan);

}  // namespace wan
