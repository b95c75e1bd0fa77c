#include "engine/planning/latents_plan.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "engine/checkpoint/upstream_constants.h"
#include "engine/families/model_family.h"
#include "engine/formats/dtype.h"
#include "engine/planning/plan_memory.h"

namespace wan {
namespace {

constexpr char kStrength[] = "strength";

std::string SizeText(const VideoShape& shape) {
  return absl::StrCat(shape.width, "x", shape.height, "x", shape.num_frames);
}

// Returns the published families whose latents have this many channels: "t2v-a14b, i2v-a14b"; empty
// if there are none.
std::string FamiliesWith(int64_t channels) {
  std::vector<std::string> names;
  for (const ModelFamily& family : ModelFamilies()) {
    const auto published = static_cast<int64_t>(UpstreamVae(family.vae).latents_mean.size());
    if (published == channels) names.emplace_back(NameOf(family.id));
  }
  return absl::StrJoin(names, ", ");
}

// Returns the source of latents with another shape than `expected`: ", latents of ti2v-5b" or ",
// which is 832x480x81"; empty if it is unknown.
std::string OriginOf(const std::vector<int64_t>& shape, const std::vector<int64_t>& expected,
                     const VaeConfig& vae) {
  if (shape.size() != expected.size()) return "";
  if (shape.front() != expected.front()) {
    const std::string families = FamiliesWith(shape.front());
    return families.empty() ? "" : absl::StrCat(", latents of ", families);
  }
  constexpr int64_t kMost = 1 << 20;
  const auto unlikely = [](int64_t extent) { return extent < 1 || extent > kMost; };
  if (std::any_of(shape.begin(), shape.end(), unlikely)) return "";
  return absl::StrCat(", which is ",
                      SizeText({static_cast<int>(shape[3] * vae.stride_spatial),
                                static_cast<int>(shape[2] * vae.stride_spatial),
                                static_cast<int>((shape[1] - 1) * vae.stride_temporal + 1)}));
}

// Adds a violation if the request's latents do not have the shape of the video's latents.
void CheckShape(const char* field, const std::optional<std::vector<int64_t>>& found,
                const PlannedModel& model, const VideoShape& shape,
                std::vector<FieldViolation>& violations) {
  const std::vector<int64_t> expected = LatentShape(model, shape);
  if (!found.has_value() || *found == expected) return;
  const bool other_channels = found->size() == expected.size() && found->front() != expected[0];
  violations.push_back(
      {field,
       absl::StrCat("is ", ShapeText(*found), OriginOf(*found, expected, model.vae), "; must be ",
                    ShapeText(expected), " for ", SizeText(shape), other_channels ? " of " : "",
                    other_channels ? std::string(NameOf(model.family->id)) : "")});
}

void CheckStrength(const GenerationRequest& request, std::vector<FieldViolation>& violations) {
  const bool needed = request.latents != nullptr && !OnlyDecodes(request);
  if (!request.strength.has_value()) {
    if (!needed) return;
    violations.push_back({kStrength,
                          "is unset; must be above 0 and at most 1 beside latents, for example "
                          "0.6; or steps must be 0, which only decodes them"});
    return;
  }
  const std::string is = absl::StrCat("is ", *request.strength);
  if (!needed) {
    violations.push_back(
        {kStrength, absl::StrCat(is, request.latents == nullptr
                                         ? "; must be left out without latents to begin with"
                                         : "; must be left out with steps 0")});
  } else if (!(*request.strength > 0 && *request.strength <= 1)) {  // the condition also refuses
                                                                    // NaN
    violations.push_back(
        {kStrength, absl::StrCat(is, "; must be above 0 and at most 1, for example 0.6")});
  }
}

// Adds violations of fields that have no meaning if no step is computed.
void CheckDecoding(const GenerationRequest& request, std::vector<FieldViolation>& violations) {
  if (request.initial_latents != nullptr) {
    violations.push_back(
        {"initial_latents", "is set; must be left out with steps 0, which begins with no noise"});
  }
  if (request.image != nullptr) {
    violations.push_back({"image",
                          "is set; must be left out with steps 0, because the latents have the "
                          "first frame in them"});
  }
  if (!request.loras.empty()) {
    violations.push_back({"loras", absl::StrCat("has ", request.loras.size(),
                                                " entries; must be empty with steps 0, which "
                                                "computes nothing with them")});
  }
  const bool only_latents =
      std::all_of(request.outputs.begin(), request.outputs.end(),
                  [](OutputKind kind) { return kind == OutputKind::kLatents; });
  if (only_latents) {
    violations.push_back({"outputs", "has no video; must have one with steps 0, for example MP4"});
  }
}

}  // namespace

bool OnlyDecodes(const GenerationRequest& request) {
  return request.latents != nullptr && request.steps == 0;
}

std::vector<FieldViolation> CheckLatents(const GenerationRequest& request,
                                         const PlannedModel& model,
                                         const InspectedRequest& inspected,
                                         const std::optional<VideoShape>& shape) {
  std::vector<FieldViolation> violations;
  CheckStrength(request, violations);
  if (OnlyDecodes(request)) CheckDecoding(request, violations);
  if (request.latents != nullptr && request.calibrate) {
    violations.push_back({"calibrate",
                          "is true; must be false beside latents, because the ratios are those of "
                          "all steps, from noise on"});
  }
  if (shape.has_value()) {
    CheckShape("initial_latents", inspected.initial_latents, model, *shape, violations);
    CheckShape("latents", inspected.latents, model, *shape, violations);
  }
  return violations;
}

std::optional<FieldViolation> SetFirstStep(GenerationPlan& plan) {
  if (!plan.request.strength.has_value()) return std::nullopt;
  const auto strength = static_cast<float>(*plan.request.strength);
  const auto first = std::find_if(plan.sigmas.begin(), plan.sigmas.end(),
                                  [&](float sigma) { return sigma <= strength; });
  plan.first_step = static_cast<int>(first - plan.sigmas.begin());
  const size_t steps = plan.steps.size();
  if (plan.first_step < static_cast<int>(steps)) return std::nullopt;
  // Round up, so that the strength that the message names is accepted.
  constexpr double kDigits = 1e4;
  const double least = std::min(1.0, std::ceil(plan.sigmas[steps - 1] * kDigits) / kDigits);
  return FieldViolation{kStrength,
                        absl::StrCat("is ", *plan.request.strength, "; must be at least ", least,
                                     ", the noise level of the last of ", steps,
                                     " steps; or steps must be 0, which only decodes the latents")};
}

void DropEarlierSteps(GenerationPlan& plan) {
  if (plan.first_step == 0) return;
  plan.steps.erase(plan.steps.begin(), plan.steps.begin() + plan.first_step);
  plan.sigmas.erase(plan.sigmas.begin(), plan.sigmas.begin() + plan.first_step);
  plan.guided =
      plan.guided && std::any_of(plan.steps.begin(), plan.steps.end(),
                                 [](const StepPlan& step) { return step.guidance_scale != 1; });
  if (plan.unguided_from.has_value()) {
    plan.unguided_from = std::max(0, *plan.unguided_from - plan.first_step);
  }
}

}  // namespace wan
