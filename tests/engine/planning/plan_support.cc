#include "tests/engine/planning/plan_support.h"

#include <memory>
#include <optional>
#include <utility>

namespace wan {

PlannedModel RealModel() {
  PlannedModel model;
  model.family = &FindModelFamily(FamilyId::kTi2v5b);
  model.transformer.dim = 3072;
  model.transformer.ffn_dim = 14336;
  model.transformer.num_heads = 24;
  model.transformer.num_layers = 30;
  model.transformer.in_channels = 48;
  model.transformer.out_channels = 48;
  model.transformer.text_len = 512;
  model.transformer.patch_size = {1, 2, 2};
  model.text_encoder.dim = 4096;
  model.text_encoder.ffn_dim = 10240;
  model.text_encoder.num_heads = 64;
  model.text_encoder.head_dim = 64;
  model.text_encoder.num_layers = 24;
  model.vae.z_dim = 48;
  model.vae.decoder_base_dim = 256;
  model.vae.patch_size = 2;
  model.vae.stride_spatial = 16;
  model.vae.stride_temporal = 4;
  return model;
}

PlannedModel RealA14b(FamilyId family, double boundary) {
  PlannedModel model = RealModel();
  model.family = &FindModelFamily(family);
  model.transformer.dim = 5120;
  model.transformer.ffn_dim = 13824;
  model.transformer.num_heads = 40;
  model.transformer.num_layers = 40;
  model.transformer.in_channels = family == FamilyId::kI2vA14b ? 36 : 16;
  model.transformer.out_channels = 16;
  model.vae.z_dim = 16;
  model.vae.decoder_base_dim = 96;
  model.vae.patch_size = 1;
  model.vae.stride_spatial = 8;
  model.expert_boundary = boundary;
  return model;
}

PlannedModel RealT2v() { return RealA14b(FamilyId::kT2vA14b, 0.875); }
PlannedModel RealI2v() { return RealA14b(FamilyId::kI2vA14b, 0.9); }

PlannedModel FewStepT2v() {
  PlannedModel model = RealT2v();
  model.few_step = FewStepConfig{{1000, 750, 500, 250}, 5, std::nullopt};
  return model;
}

GenerationRequest TextRequest() {
  GenerationRequest request;
  request.model = "m";
  request.prompt = "a cat";
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
  return MakePlan(request, RealModel(), inspected, /*drawn_seed=*/77, limits);
}

absl::StatusOr<GenerationPlan> PlanOn(const PlannedModel& model, const GenerationRequest& request,
                                      const InspectedRequest& inspected) {
  return MakePlan(request, model, inspected, /*drawn_seed=*/77, {});
}

GenerationRequest ImageRequest() {
  GenerationRequest request = TextRequest();
  request.image = std::make_shared<const std::string>("image bytes");
  return request;
}

InspectedRequest ImageOf(int width, int height) {
  InspectedRequest inspected = GoodTexts();
  inspected.image = VideoShape{width, height, 1};
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

}  // namespace wan
