// Gives requests the schedules of the LoRAs that they use.
#pragma once

#include <optional>

#include "absl/status/status.h"
#include "engine/api/errors.h"
#include "engine/api/generation.h"
#include "engine/api/lora.h"
#include "engine/planning/planned_model.h"

namespace wan {

// All functions are pure; any thread may call them.

// Checks a schedule that somebody has registered for a model. INVALID_ARGUMENT if a job with the
// schedule would be refused; the message begins with the field.
absl::Status CheckLoraSchedule(const LoraSchedule& schedule, const ModelFamily& family);

// Sets those of the fields steps, shift, solver and guidance_scale that the request leaves unset to
// the values of the LoRAs' schedule. Also sets the sigmas and the boundary between the experts.
// Does nothing in three cases: the request sets all four fields, as a resolved request does; no
// LoRA of the request has a schedule, or their schedules differ; the model itself is a few-step
// model. Returns whether the request has taken a schedule.
bool TakeLoraSchedule(const PlannedModel& model, GenerationRequest& request);

// Returns whether the request has sigmas or a boundary, or uses a LoRA that was distilled for few
// steps. `quality: fast` cannot skip steps of such a request, and `calibrate` cannot measure them.
bool HasFewSteps(const PlannedModel& model, const GenerationRequest& request);

// Returns a violation if TakeLoraSchedule cannot choose between the schedules of several LoRAs.
std::optional<FieldViolation> ProblemOfLoraSchedules(const PlannedModel& model,
                                                     const GenerationRequest& request);

}  // namespace wan
