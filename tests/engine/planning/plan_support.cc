#include "tests/engine/planning/plan_support.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>

namespace wan {

PlannedModel Published(const std::string& name) {
  const auto checkpoint = Checkpoint::Open("synthetic:" + name);
  EXPECT_TRUE(checkpoint.ok()) << checkpoint.status();
  return PlanCheckpoint(**checkpoint, /*element_bytes=*/2, {});
}

PlannedModel RealModel() { return RealModel(FamilyId::kTi2v5b); }

PlannedModel RealModel(FamilyId family) {
  PlannedModel model = Published(std::string(NameOf(family)));
  model.components.clear();
  return model;
}

PlannedModel RealT2v() { return RealModel(FamilyId::kT2vA14b); }
PlannedModel RealI2v() { return RealModel(FamilyId::kI2vA14b); }

PlannedModel FewStepT2v() {
  PlannedModel model = RealT2v();
  model.few_step = FewStepConfig{.timesteps = {1000, 750, 500, 250}, .shift = 5};
  return model;
}

GenerationRequest TextRequest() {
  GenerationRequest request;
  request.model = "m";
  request.prompt = "a cat";
  return request;
}

GenerationRequest SizedRequest(int width, int height, int frames) {
  GenerationRequest request = TextRequest();
  request.width = width;
  request.height = height;
  request.num_frames = frames;
  return request;
}

InspectedRequest GoodTexts() {
  InspectedRequest inspected;
  inspected.prompt_tokens = 4;
  inspected.negative_prompt_tokens = 139;
  return inspected;
}

absl::StatusOr<GenerationPlan> Plan(const GenerationRequest& request,
                                    const InspectedRequest& inspected, PlanLimits limits) {
  return PlanOn(RealModel(), request, inspected, limits);
}

absl::StatusOr<GenerationPlan> PlanOn(const PlannedModel& model, const GenerationRequest& request,
                                      const InspectedRequest& inspected, PlanLimits limits) {
  return MakePlan(ResolveRequest(request, model, /*drawn_seed=*/77), model, inspected, limits);
}

GenerationRequest ImageRequest() {
  GenerationRequest request = TextRequest();
  request.image = std::make_shared<const std::string>("image bytes");
  return request;
}

InspectedRequest ImageOf(int width, int height) {
  InspectedRequest inspected = GoodTexts();
  inspected.image = ImageSize{width, height};
  return inspected;
}

std::vector<std::string> ExpertsOf(const GenerationPlan& plan) {
  std::vector<std::string> experts;
  for (const StepPlan& step : plan.steps) experts.emplace_back(NameOf(step.expert));
  return experts;
}

std::vector<double> ScalesOf(const GenerationPlan& plan) {
  std::vector<double> scales;
  for (const StepPlan& step : plan.steps) scales.push_back(step.guidance_scale);
  return scales;
}

std::vector<std::string> FieldsOf(const absl::Status& status) {
  std::vector<std::string> fields;
  for (const FieldViolation& violation : FieldViolationsOf(status)) {
    fields.push_back(violation.field);
  }
  return fields;
}

const StagePlan& StageOf(const GenerationPlan& plan, const std::string& name) {
  const auto found =
      std::find_if(plan.stages.begin(), plan.stages.end(),
                   [&](const StagePlan& stage) { return NameOf(stage.stage) == name; });
  EXPECT_NE(found, plan.stages.end()) << name;
  return *found;
}

std::string Shortage(const absl::StatusOr<GenerationPlan>& plan) {
  EXPECT_EQ(plan.status().code(), absl::StatusCode::kInvalidArgument) << plan.status();
  const auto violations = FieldViolationsOf(plan.status());
  EXPECT_EQ(violations.size(), 1u) << plan.status();
  if (violations.size() != 1) return "";
  EXPECT_EQ(violations[0].field, "num_frames");
  return violations[0].description;
}

}  // namespace wan
