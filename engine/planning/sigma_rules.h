// The rules for the noise levels and the boundary between experts that a request or a LoRA gives.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "engine/families/model_family.h"

namespace wan {

// The solver that takes noise levels, and with which LoRAs for few steps are distilled.
inline constexpr char kSolverOfSigmas[] = "euler";

// Both functions return what is wrong, to follow the field's name; nullopt if nothing is.
std::optional<std::string> ProblemOfSigmas(std::span<const double> sigmas, int steps);
std::optional<std::string> ProblemOfBoundary(int boundary_step, int steps,
                                             const ModelFamily& family);

}  // namespace wan
