#include "engine/planning/step_reuse.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "absl/strings/str_cat.h"
#include "engine/planning/lora_schedule.h"
#include "engine/planning/plan_memory.h"

namespace wan {
namespace {

constexpr double kRetainedShare = 0.2;  // the share for an expert that ReuseRule does not name

bool HasPublishedSize(const PlannedModel& model) {
  const PublishedSize& published = model.family->published;
  const TransformerConfig& own = model.transformer;
  return own.dim == published.dim && own.ffn_dim == published.ffn_dim &&
         own.num_heads == published.num_heads && own.num_layers == published.num_layers;
}

// Returns the checkpoint's own ratios, or else the published ratios if the model has a published
// size; null if neither exist.
const StepRatios* RatiosOf(const PlannedModel& model, bool with_image) {
  if (model.step_ratios.has_value()) return &*model.step_ratios;
  const auto published = with_image ? model.family->image_ratios : model.family->text_ratios;
  return published != nullptr && HasPublishedSize(model) ? &published() : nullptr;
}

double RetainedShare(const PlannedModel& model, const StepRatios& ratios, size_t expert) {
  const std::vector<double>& shares = model.family->reuse.retained_shares;
  const double share = expert < shares.size() ? shares[expert] : kRetainedShare;
  return ratios.experts[expert].retained_share.value_or(share);
}

bool IsGuided(const StepPlan& step) { return step.guidance_scale != 1; }

}  // namespace

std::vector<bool> ChooseReusingSteps(const ReusePhase& phase, double threshold, int most_in_row) {
  struct Branch {
    double ratio = 1;
    double error = 0;
  };
  const size_t steps = phase.branches.front().size();
  std::vector<bool> reuses(steps, false);
  std::vector<Branch> branches(phase.branches.size());
  int in_row = 0;
  for (auto step = static_cast<size_t>(std::max(phase.retained, 1)); step < steps; ++step) {
    bool all = ++in_row <= most_in_row;
    for (size_t i = 0; i < branches.size(); ++i) {
      branches[i].ratio *= phase.branches[i][step];
      branches[i].error += std::abs(1 - branches[i].ratio);
      all = all && branches[i].error < threshold;
    }
    reuses[step] = all;
    if (all) continue;
    in_row = 0;
    std::fill(branches.begin(), branches.end(), Branch());
  }
  return reuses;
}

std::vector<double> RatiosForSteps(std::span<const double> measured, int steps) {
  // A step without a measurement must not reuse; a ratio of 0 is far enough from 1 to prevent it.
  std::vector<double> ratios(static_cast<size_t>(steps), measured.empty() ? 0 : 1);
  // std::nearbyint rounds a half to the even number, as numpy.round does.
  const double scale =
      steps > 1 ? static_cast<double>(measured.size()) / static_cast<double>(steps - 1) : 0;
  for (int step = 1; step < steps && !measured.empty(); ++step) {
    const auto nearest = static_cast<size_t>(std::nearbyint(step * scale));
    if (nearest > 0) ratios[static_cast<size_t>(step)] = measured[nearest - 1];
  }
  return ratios;
}

int RetainedSteps(int steps, double share) {
  // MagCache counts both forwards of a step, and retains a step if its first forward is retained.
  const double forwards = std::floor(2 * steps * share);
  return static_cast<int>(std::ceil(forwards / 2));
}

std::optional<std::string> ProblemOfFast(const GenerationRequest& request,
                                         const PlannedModel& model, bool guided) {
  constexpr char kMust[] = "is fast; must be exact or high ";
  if (model.few_step.has_value()) {
    return absl::StrCat(kMust, "for this few-step model, which has no steps to skip");
  }
  if (HasFewSteps(model, request)) {
    return absl::StrCat(kMust,
                        "for a request with a few-step LoRA, sigmas or a boundary_step, which has "
                        "no steps to skip");
  }
  const StepRatios* const ratios = RatiosOf(model, request.image != nullptr);
  if (ratios == nullptr) {
    return absl::StrCat(kMust, "for this model until its ratios are measured: wanctl calibrate ",
                        request.model);
  }
  if (ratios->shift != *request.shift) {
    return absl::StrCat(kMust, "with shift ", *request.shift,
                        ", because this model's ratios were measured with shift ", ratios->shift);
  }
  for (size_t expert = 0; expert < ratios->experts.size(); ++expert) {
    const PhaseRatios& phase = ratios->experts[expert];
    const bool last = expert + 1 == ratios->experts.size();
    const double scale = last ? request.guidance_scale.front() : request.guidance_scale.back();
    const bool unguided = phase.unconditional.empty() && !phase.conditional.empty();
    if (guided && scale != 1 && unguided) {
      return absl::StrCat(kMust,
                          "with guidance, because this model's ratios were measured without it");
    }
  }
  return std::nullopt;
}

void PlanFastSteps(const PlannedModel& model, GenerationPlan& plan) {
  const size_t total = plan.steps.size();
  const double guided_steps = model.options.guidance_until * static_cast<double>(total);
  for (size_t i = 0; i < total; ++i) {
    if (static_cast<double>(i) < guided_steps) continue;
    plan.steps[i].guidance_scale = 1;
    if (plan.guided && !plan.unguided_from) plan.unguided_from = static_cast<int>(i);
  }
  plan.guided = plan.guided && std::any_of(plan.steps.begin(), plan.steps.end(), IsGuided);

  const StepRatios& ratios = *RatiosOf(model, plan.image_to_video);
  const double threshold = ratios.threshold.value_or(model.family->reuse.threshold);
  const int most_in_row = ratios.most_in_row.value_or(model.family->reuse.most_in_row);
  for (size_t expert = 0; expert < ratios.experts.size(); ++expert) {
    const auto is_expert = [&](const StepPlan& step) { return ExpertIndex(step.expert) == expert; };
    const auto begin = std::find_if(plan.steps.begin(), plan.steps.end(), is_expert);
    const auto end = std::find_if_not(begin, plan.steps.end(), is_expert);
    const auto computed = std::clamp(plan.steps.begin() + plan.first_step, begin, end);
    const auto steps = static_cast<int>(end - begin);
    const PhaseRatios& measured = ratios.experts[expert];
    const std::vector<double> conditional = RatiosForSteps(measured.conditional, steps);
    const std::vector<double> unconditional = RatiosForSteps(measured.unconditional, steps);
    const int retained = RetainedSteps(steps, RetainedShare(model, ratios, expert));
    // Where guidance ends, the expert prepares the texts anew, so the next step has no kept blocks
    // to reuse.
    for (auto first = computed; first != end;) {
      const bool guided = IsGuided(*first);
      const auto last =
          std::find_if(first, end, [&](const StepPlan& step) { return IsGuided(step) != guided; });
      ReusePhase phase;
      phase.retained = retained - static_cast<int>(first - computed);
      const auto slice = [&](const std::vector<double>& of_expert) {
        phase.branches.emplace_back(of_expert.begin() + (first - begin),
                                    of_expert.begin() + (last - begin));
      };
      slice(conditional);
      if (guided) slice(unconditional);
      for (const bool reuses : ChooseReusingSteps(phase, threshold, most_in_row)) {
        first->reuses_blocks = reuses;
        ++first;
      }
    }
  }
}

}  // namespace wan
