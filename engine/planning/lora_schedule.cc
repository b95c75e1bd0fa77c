#include "engine/planning/lora_schedule.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "engine/api/request_limits.h"
#include "engine/planning/sigma_rules.h"
#include "engine/schedulers/flow_schedule.h"

namespace wan {
namespace {

bool SetsAll(const GenerationRequest& request) {
  return request.steps.has_value() && request.shift.has_value() && !request.solver.empty() &&
         !request.guidance_scale.empty();
}

// Returns the LoRAs with a schedule that change an expert in the request.
std::vector<const PlannedLora*> ScheduledLoras(const PlannedModel& model,
                                               const GenerationRequest& request) {
  std::vector<const PlannedLora*> scheduled;
  for (const LoraScale& chosen : request.loras) {
    const auto& experts = model.family->experts;
    const bool changes = std::any_of(experts.begin(), experts.end(),
                                     [&](ExpertRole expert) { return chosen.For(expert) != 0; });
    for (const PlannedLora& lora : model.loras) {
      if (changes && lora.name == chosen.name && lora.schedule) scheduled.push_back(&lora);
    }
  }
  return scheduled;
}

bool Agree(const std::vector<const PlannedLora*>& loras) {
  return std::all_of(loras.begin(), loras.end(), [&](const PlannedLora* lora) {
    return lora->schedule == loras.front()->schedule;
  });
}

}  // namespace

absl::Status CheckLoraSchedule(const LoraSchedule& schedule, const ModelFamily& family) {
  const auto wrong = [](const std::string& text) {
    return absl::InvalidArgumentError(absl::StrCat("schedule.", text));
  };
  if (schedule.steps < 0 || schedule.steps > kMaxFlowSteps) {
    return wrong(absl::StrCat("steps is ", schedule.steps, "; must be from 1 to ", kMaxFlowSteps,
                              ", or 0 for no schedule"));
  }
  if (schedule.steps == 0) return absl::OkStatus();
  if (!schedule.sigmas.empty()) {
    // If the schedule has no shift, a job uses the shift of the request or the model, which is not
    // known here.
    const double shift = schedule.shift.value_or(1);
    if (const auto problem = ProblemOfSigmas(schedule.sigmas, schedule.steps, shift)) {
      return wrong(absl::StrCat("sigmas ", *problem));
    }
  }
  // Written this way, the conditions also refuse NaN.
  if (schedule.shift && !(*schedule.shift >= kMinFlowShift && *schedule.shift <= kMaxFlowShift)) {
    return wrong(absl::StrCat("shift is ", *schedule.shift, "; must be from ", kMinFlowShift,
                              " to ", kMaxFlowShift));
  }
  if (schedule.guidance_scale.size() > family.experts.size()) {
    return wrong(absl::StrCat("guidance_scale has ", schedule.guidance_scale.size(),
                              " values; must have at most ", family.experts.size()));
  }
  for (const double scale : schedule.guidance_scale) {
    if (!(scale >= 0 && scale <= kMaxGuidanceScale)) {
      return wrong(
          absl::StrCat("guidance_scale is ", scale, "; must be from 0 to ", kMaxGuidanceScale));
    }
  }
  if (schedule.boundary_step) {
    if (const auto problem = ProblemOfBoundary(*schedule.boundary_step, schedule.steps, family)) {
      return wrong(absl::StrCat("boundary_step ", *problem));
    }
  }
  return absl::OkStatus();
}

bool TakeLoraSchedule(const PlannedModel& model, GenerationRequest& request) {
  const std::vector<const PlannedLora*> loras = ScheduledLoras(model, request);
  if (loras.empty() || !Agree(loras) || SetsAll(request) || model.few_step.has_value()) {
    return false;
  }
  const LoraSchedule& schedule = *loras.front()->schedule;
  if (!request.steps && !request.sigmas.empty()) {
    request.steps = static_cast<int>(request.sigmas.size());
  }
  if (!request.steps) request.steps = schedule.steps;
  if (!request.shift) request.shift = schedule.shift;
  if (request.solver.empty()) request.solver = kSolverOfSigmas;
  if (request.guidance_scale.empty()) {
    request.guidance_scale =
        schedule.guidance_scale.empty() ? std::vector<double>{1} : schedule.guidance_scale;
  }
  const bool same_steps = request.steps == schedule.steps;
  if (request.sigmas.empty() && same_steps && request.solver == kSolverOfSigmas) {
    request.sigmas = schedule.sigmas;
  }
  const bool in_range = *request.steps > 0 && *request.steps <= kMaxFlowSteps;
  if (!request.boundary_step && schedule.boundary_step && in_range) {
    // The boundary keeps its proportion of the steps, and halves are rounded up.
    const int64_t doubled = 2 * int64_t{*schedule.boundary_step} * *request.steps;
    request.boundary_step =
        static_cast<int>((doubled + schedule.steps) / (2 * int64_t{schedule.steps}));
  }
  return true;
}

bool HasFewSteps(const PlannedModel& model, const GenerationRequest& request) {
  return !request.sigmas.empty() || request.boundary_step.has_value() ||
         !ScheduledLoras(model, request).empty();
}

std::optional<FieldViolation> ProblemOfLoraSchedules(const PlannedModel& model,
                                                     const GenerationRequest& request) {
  const std::vector<const PlannedLora*> loras = ScheduledLoras(model, request);
  if (Agree(loras) || SetsAll(request) || model.few_step.has_value()) return std::nullopt;
  const std::string names = absl::StrJoin(
      loras, ", ", [](std::string* out, const PlannedLora* lora) { out->append(lora->name); });
  return FieldViolation{
      "loras", absl::StrCat("names LoRAs with different schedules, ", names,
                            "; must name one of them, or the request must set steps, shift, "
                            "solver and guidance_scale")};
}

}  // namespace wan
