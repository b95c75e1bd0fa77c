// Models at their real dimensions, and requests, for tests of planning.
#pragma once

#include <string>
#include <vector>

#include "engine/planning/plan.h"

namespace wan {

// TI2V-5B at its real dimensions.
PlannedModel RealModel();
// The A14B models at theirs.
PlannedModel RealA14b(FamilyId family, double boundary);
PlannedModel RealT2v();
PlannedModel RealI2v();
// T2V-A14B distilled for 1000, 750, 500, 250 at shift 5.
PlannedModel FewStepT2v();

// For model "m", with a prompt and nothing else.
GenerationRequest TextRequest();
GenerationRequest ImageRequest();

// Texts of an allowed length, and an image of this size.
InspectedRequest GoodTexts();
InspectedRequest ImageOf(int width, int height);

// Plans with the seed 77 to draw.
absl::StatusOr<GenerationPlan> PlanOn(const PlannedModel& model, const GenerationRequest& request,
                                      const InspectedRequest& inspected = GoodTexts());
// On RealModel().
absl::StatusOr<GenerationPlan> Plan(const GenerationRequest& request,
                                    const InspectedRequest& inspected = GoodTexts(),
                                    PlanLimits limits = {});

std::vector<std::string> ExpertsOf(const GenerationPlan& plan);
std::vector<double> ScalesOf(const GenerationPlan& plan);
std::vector<std::string> FieldsOf(const absl::Status& status);

}  // namespace wan
