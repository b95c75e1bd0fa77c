// Measures of how much the work of a transformer's blocks changes from one denoising step to the
// next, and the rule that decides which steps reuse that work (engine/planning/step_reuse.h). The
// method is MagCache (arXiv 2506.09045).
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace wan {

// The ratios of one expert's steps. Entry i belongs to the expert's step i + 1. Take the L2 norm of
// what the blocks add to a token's residual stream in that step, divided by the norm in the
// previous step. The entry is the mean over all tokens.
struct PhaseRatios {
  std::vector<double> conditional;    // forwards with the prompt
  std::vector<double> unconditional;  // forwards without the prompt; empty: measured without
                                      // guidance
  // If set, replaces the expert's entry in ReuseRule::retained_shares.
  std::optional<double> retained_share;

  friend bool operator==(const PhaseRatios&, const PhaseRatios&) = default;
};

// The ratios of one measured job, and its sampling.
struct StepRatios {
  std::string solver;
  int steps = 0;
  double shift = 0;
  std::vector<double> guidance_scale;  // as GenerationRequest::guidance_scale
  std::vector<PhaseRatios> experts;    // in the checkpoint's order
  // If set, these two replace the members of ReuseRule.
  std::optional<double> threshold;
  std::optional<int> most_in_row;

  friend bool operator==(const StepRatios&, const StepRatios&) = default;
};

// The rule for reusing the blocks' work in a step. The defaults are MagCache's for Wan2.2.
struct ReuseRule {
  // The estimated error of consecutive reusing steps stays below this.
  double threshold = 0.06;
  int most_in_row = 2;  // maximum number of consecutive reusing steps
  // For each expert, the share of its steps, counted from the first, that never reuse blocks. An
  // expert without an entry has 0.2.
  std::vector<double> retained_shares;
};

// Published ratios of the models; they live until the process ends.
const StepRatios& PublishedTi2vTextRatios();
const StepRatios& PublishedTi2vImageRatios();
const StepRatios& PublishedT2vRatios();
const StepRatios& PublishedI2vRatios();
const StepRatios& PublishedWan21T2v1bRatios();
const StepRatios& PublishedWan21T2v14bRatios();

}  // namespace wan
