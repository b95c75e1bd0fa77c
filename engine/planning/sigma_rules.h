// The rules for the noise levels and the boundary between experts that a request or a LoRA gives.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/families/model_family.h"

namespace wan {

// The only solver that accepts noise levels; LoRAs for few steps are distilled with it.
inline constexpr char kSolverOfSigmas[] = "euler";

// Returns the timesteps of MakeEulerSchedule for noise levels before the shift.
std::vector<double> TimestepsOf(std::span<const double> sigmas);

// Both functions return a message, which the caller puts after the field's name; nullopt if nothing
// is wrong. Different levels must still differ in fp32 after `shift` has moved them, because jobs
// compute in fp32. Neither function checks whether the shift is valid.
std::optional<std::string> ProblemOfSigmas(std::span<const double> sigmas, int steps, double shift);
std::optional<std::string> ProblemOfBoundary(int boundary_step, int steps,
                                             const ModelFamily& family);

}  // namespace wan
