// Decides which steps of a fast job reuse what the blocks of an earlier step have added to the
// residual stream, and which run without guidance. Pure functions.
//
// The rule is MagCache's for Wan2.2 (magcache_forward of MagCache4Wan2.2/magcache_generate.py in
// https://github.com/Zehong-Ma/MagCache). A step that would reuse multiplies, for each forward, the
// ratios of all steps since the one that computed; the error of reusing is the distance of that
// product from 1, and the errors of consecutive reusing steps add up. The step reuses while the sum
// stays below a threshold and not too many steps in a row have reused. Different here: all forwards
// of a step reuse or none does; every expert begins anew, with ratios and errors of its own; and an
// expert's first steps that never reuse are counted the same way for both experts.
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
  // For each forward of a step, every step's ratio to the step before it. The first step's ratio is
  // not read.
  std::vector<std::vector<double>> branches;
  int retained = 0;  // number of first steps that never reuse; the first one never does
};

// Returns, for each step of the phase, whether it reuses.
std::vector<bool> ChooseReusingSteps(const ReusePhase& phase, double threshold, int most_in_row);

// Returns the ratios of an expert's steps, of which there are `steps`, from those measured with
// another number of steps: each step takes the ratio of the nearest measured step, or 0 if
// none was measured.
std::vector<double> RatiosForSteps(std::span<const double> measured, int steps);

// Returns how many of an expert's first steps never reuse.
int RetainedSteps(int steps, double share);

// Returns why the quality of `request` cannot be fast and what it must be; nullopt if it can.
// `guided` is GenerationPlan::guided.
std::optional<std::string> ProblemOfFast(const GenerationRequest& request,
                                         const PlannedModel& model, bool guided);

// Completes the steps of a fast job, for which ProblemOfFast must have found no problem: sets
// reuses_blocks, and the guidance scale 1 and unguided_from after the model's share of guided
// steps. The plan must have the whole schedule, of which the job computes the steps from first_step
// on: the ratios and the share are those of the schedule, but reusing counts from the first step
// that each expert computes.
void PlanFastSteps(const PlannedModel& model, GenerationPlan& plan);

}  // namespace wan
