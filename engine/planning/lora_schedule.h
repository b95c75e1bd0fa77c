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

// Checks a schedule that somebody has registered for a model. INVALID_ARGUMENT if a job with it
// would be refused; the message begins with the field.
absl::Status CheckLoraSchedule(const LoraSchedule& schedule, const ModelFamily& family);

// Sets those of the fields steps, shift, solver and guidance_scale that are unset to the values of
// the LoRAs' schedule, and with them the sigmas and the boundary between the experts. Does nothing
// if the request sets all four fields itself, so that a resolved request stays as it is; if no LoRA
// of the request has a schedule, or several have different ones; or if the model itself is a
// few-step model. Returns whether the request has taken a schedule.
bool TakeLoraSchedule(const PlannedModel& model, GenerationRequest& request);

// Whether the request has sigmas or a boundary of its own, or uses a LoRA that was distilled for
// few steps. Such a request has no steps to skip, and its steps say nothing about those of others.
bool HasFewSteps(const PlannedModel& model, const GenerationRequest& request);

// Returns a violation if TakeLoraSchedule cannot choose between the schedules of several LoRAs.
std::optional<FieldViolation> ProblemOfLoraSchedules(const PlannedModel& model,
                                                     const GenerationRequest& request);

}  // namespace wan
