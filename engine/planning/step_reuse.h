// Decides which steps of a fast job run without guidance, and which steps reuse the sum that an
// earlier step's blocks added to the residual stream. Pure functions.
//
// The rule is MagCache's for Wan2.2 (magcache_forward of MagCache4Wan2.2/magcache_generate.py in
// https://github.com/Zehong-Ma/MagCache). For each forward of a step that may reuse, the rule
// multiplies the ratios of all steps since the last computed step. The error of reusing is the
// distance of that product from 1, and the errors of consecutive reusing steps add up. A step
// reuses if the sum of errors is below a threshold and the number of reusing steps in a row is
// below a limit. This code differs from MagCache in three ways. Either all forwards of a step
// reuse, or none does. Every expert has ratios and errors of its own. Both experts count their
// first steps, which never reuse, in the same way.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/api/generation.h"
#include "engine/planning/planned_model.h"

namespace wan {

// Consecutive steps of one expert with the same forwards.
struct ReusePhase {
  // For each forward of a step: the ratio of every step to the previous step. The first step's
  // ratio is not read.
  std::vector<std::vector<double>> branches;
  int retained = 0;  // number of first steps that never reuse; at least the first step never does
};

// Returns, for each step of the phase, whether it reuses.
std::vector<bool> ChooseReusingSteps(const ReusePhase& phase, double threshold, int most_in_row);

// Returns the ratios for an expert with `steps` steps, from ratios that were measured with another
// number of steps: each step takes the ratio of the nearest measured step, or 0 if no step was
// measured.
std::vector<double> RatiosForSteps(std::span<const double> measured, int steps);

// Returns how many of an expert's first steps never reuse.
int RetainedSteps(int steps, double share);

// Returns why the quality of `request` cannot be fast, and which quality is right; nullopt if it
// can be fast. `guided` is GenerationPlan::guided.
std::optional<std::string> ProblemOfFast(const GenerationRequest& request,
                                         const PlannedModel& model, bool guided);

// Completes the steps of a fast job for which ProblemOfFast found no problem. Sets reuses_blocks.
// Also sets unguided_from, and the guidance scale 1 for the steps after the model's share of guided
// steps. The plan must have the whole schedule. Ratios and share refer to the whole schedule. But
// the steps that never reuse are counted from the first step that each expert computes, because the
// job computes only the steps from first_step on.
void PlanFastSteps(const PlannedModel& model, GenerationPlan& plan);

}  // namespace wan
