// Decides which steps of a fast job reuse what the blocks of an earlier step have added to the
// residual stream, and which run without guidance. Pure functions.
//
// The rule is MagCache's for Wan2.2 (magcache_forward of MagCache4Wan2.2/magcache_generate.py in
// https://github.com/Zehong-Ma/MagCache). For each forward of a step that may reuse, the rule
// multiplies the ratios of all steps since the last computed one. The error of reusing is the
// distance of that product from 1, and the errors of consecutive reusing steps add up. The step
// reuses while the sum stays below a threshold and the number of reusing steps in a row below a
// limit. This code differs in three ways: all forwards of a step reuse or none does; every expert
// begins anew, with ratios and errors of its own; and an expert's first steps that never reuse are
// counted the same way for both experts.
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

// Completes the steps of a fast job for which ProblemOfFast found no problem: sets reuses_blocks,
// and, after the model's share of guided steps, unguided_from and the guidance scale 1. The plan
// must have the whole schedule. Ratios and share are those of the schedule, but reusing counts from
// the first step that each expert computes, because the job computes only the steps from first_step
// on.
void PlanFastSteps(const PlannedModel& model, GenerationPlan& plan);

}  // namespace wan
