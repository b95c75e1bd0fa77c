// Plans memory: the size of the latents, where weights are, and whether a job fits.
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

// Up to this many tokens a batch of two is faster than two forwards; with more, one forward fills
// the device. Used for GuidanceBatching::kAuto.
inline constexpr int64_t kMaxTokensBatched = 4096;

// Returns the shape [C, T, H, W] of the latents of a video.
std::vector<int64_t> LatentShape(const PlannedModel& model, const VideoShape& shape);

// Returns the number of transformer tokens for latents of this shape.
int64_t CountTokens(const PlannedModel& model, const std::vector<int64_t>& latent_shape);

// Returns the index of `expert` among the model's experts.
size_t ExpertIndex(ExpertRole expert);

// Fills in the members of `plan` for latents and memory. Its request, shape and steps must be set.
// Returns nullopt if the model's components are not known. If the job does not fit,
// INVALID_ARGUMENT says what would.
absl::StatusOr<std::optional<ResidencyChoice>> PlanMemory(const PlannedModel& model,
                                                          const InspectedRequest& inspected,
                                                          const PlanLimits& limits,
                                                          GenerationPlan& plan);

}  // namespace wan
