// Models at their real dimensions, and requests, for tests of planning.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/planning/plan.h"

namespace wan {

inline constexpr uint64_t kGiB = uint64_t{1} << 30;

// A published model ("ti2v-5b") in bf16, with what its weights weigh there.
PlannedModel Published(const std::string& name);

// The same without components, so that its memory is not planned; TI2V-5B if none is named.
PlannedModel RealModel();
PlannedModel RealModel(FamilyId family);
PlannedModel RealT2v();
PlannedModel RealI2v();
// T2V-A14B distilled for 1000, 750, 500, 250 at shift 5.
PlannedModel FewStepT2v();

// For model "m", with a prompt and nothing else.
GenerationRequest TextRequest();
GenerationRequest ImageRequest();
GenerationRequest SizedRequest(int width, int height, int frames);

// Texts of an allowed length, and an image of this size.
InspectedRequest GoodTexts();
InspectedRequest ImageOf(int width, int height);

// Plans with the seed 77 to draw.
absl::StatusOr<GenerationPlan> PlanOn(const PlannedModel& model, const GenerationRequest& request,
                                      const InspectedRequest& inspected = GoodTexts(),
                                      PlanLimits limits = {});
// On RealModel().
absl::StatusOr<GenerationPlan> Plan(const GenerationRequest& request,
                                    const InspectedRequest& inspected = GoodTexts(),
                                    PlanLimits limits = {});

std::vector<std::string> ExpertsOf(const GenerationPlan& plan);
std::vector<double> ScalesOf(const GenerationPlan& plan);
std::vector<std::string> FieldsOf(const absl::Status& status);

// The plan's stage of this name, which must exist.
const StagePlan& StageOf(const GenerationPlan& plan, const std::string& name);

// What a plan says that was refused because memory does not suffice.
std::string Shortage(const absl::StatusOr<GenerationPlan>& plan);

}  // namespace wan
