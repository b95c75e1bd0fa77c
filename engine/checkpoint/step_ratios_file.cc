#include "engine/checkpoint/step_ratios_file.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "engine/api/file_problem.h"
#include "engine/api/model_parts.h"
#include "engine/api/request_limits.h"
#include "engine/checkpoint/config_limits.h"
#include "engine/formats/file_errors.h"
#include "engine/formats/json_text.h"

namespace wan {
namespace {

constexpr double kMostShift = 100;

using Problems = std::vector<absl::Status>;

void RefuseUnknown(JsonFields& fields, const std::vector<std::string>& known) {
  for (const std::string& key : fields.Keys()) {
    if (std::find(known.begin(), known.end(), key) != known.end()) continue;
    fields.AddProblem(absl::StrCat("\"", Printable(key), "\" is unknown; expected one of ",
                                   absl::StrJoin(known, ", ")));
  }
}

// Reads a number that must be above `low` and at most `high`.
double Between(JsonFields& fields, const char* key, double low, double high) {
  const double value = fields.Number(key);
  if (!fields.problems().empty() || (value > low && value <= high)) return value;
  fields.AddProblem(
      absl::StrCat("\"", key, "\" is ", value, "; must be above ", low, " and at most ", high));
  return value;
}

std::vector<double> Ratios(JsonFields& fields, const char* key) {
  std::vector<double> ratios = fields.Numbers(key);
  for (size_t i = 0; i < ratios.size(); ++i) {
    if (std::isfinite(ratios[i]) && ratios[i] > 0) continue;
    fields.AddProblem(
        absl::StrCat("\"", key, "\"[", i, "] is ", ratios[i], "; must be a ratio above 0"));
  }
  return ratios;
}

PhaseRatios ReadPhase(JsonFields& fields) {
  RefuseUnknown(fields, {"conditional", "retained_share", "unconditional"});
  PhaseRatios phase;
  phase.conditional = Ratios(fields, "conditional");
  if (fields.Has("unconditional")) phase.unconditional = Ratios(fields, "unconditional");
  if (fields.Has("retained_share")) {
    phase.retained_share = fields.Number("retained_share");
    if (!(*phase.retained_share >= 0 && *phase.retained_share <= 1)) {
      fields.AddProblem(
          absl::StrCat("\"retained_share\" is ", *phase.retained_share, "; must be from 0 to 1"));
    }
  }
  const size_t unconditional = phase.unconditional.size();
  if (unconditional > 0 && unconditional != phase.conditional.size()) {
    fields.AddProblem(absl::StrCat("\"unconditional\" has ", unconditional, " ratios; must have ",
                                   phase.conditional.size(), ", as \"conditional\" has"));
  }
  return phase;
}

StepRatios ReadSampling(JsonFields& fields, const ModelFamily& family) {
  RefuseUnknown(fields, {"experts", "guidance_scale", "model", "most_in_row", "shift", "solver",
                         "steps", "threshold", "version"});
  fields.Integer("version", kStepRatiosVersion, kStepRatiosVersion);
  const std::string model = fields.Text("model");
  if (fields.problems().empty() && model != NameOf(family.id)) {
    fields.AddProblem(absl::StrCat("\"model\" is ", Printable(model), "; must be ",
                                   std::string(NameOf(family.id)), ", the family of this model"));
  }
  StepRatios ratios;
  ratios.solver = fields.Text("solver");
  ratios.steps = static_cast<int>(fields.Integer("steps", 1, kMaxFlowSteps));
  ratios.shift = Between(fields, "shift", 0, kMostShift);
  ratios.guidance_scale = fields.Numbers("guidance_scale");
  if (fields.Has("threshold")) ratios.threshold = Between(fields, "threshold", 0, 1);
  if (fields.Has("most_in_row")) {
    ratios.most_in_row = static_cast<int>(fields.Integer("most_in_row", 1, kMaxFlowSteps));
  }
  return ratios;
}

// Reads the lists of the family's experts, which must have one ratio fewer than the experts have
// steps.
void ReadExperts(const nlohmann::json& experts, const std::string& where, const ModelFamily& family,
                 StepRatios& ratios, Problems& problems) {
  std::vector<std::string> names;
  for (const ExpertRole role : family.experts) names.emplace_back(NameOf(role));
  JsonFields all(experts, where);
  RefuseUnknown(all, names);
  size_t steps = 0;
  for (const std::string& name : names) {
    const auto found = experts.find(name);
    if (found == experts.end() || !found->is_object()) {
      all.AddProblem(absl::StrCat("\"", name, "\" must be an object with the expert's ratios"));
      continue;
    }
    const std::string place = absl::StrCat(where, ": ", name);
    JsonFields fields(*found, place);
    ratios.experts.push_back(ReadPhase(fields));
    steps += ratios.experts.back().conditional.size() + 1;
    problems.insert(problems.end(), fields.problems().begin(), fields.problems().end());
  }
  if (all.problems().empty() && problems.empty() && steps != static_cast<size_t>(ratios.steps)) {
    all.AddProblem(absl::StrCat("the lists are of ", steps, " steps; \"steps\" is ", ratios.steps,
                                " (an expert has one ratio fewer than steps)"));
  }
  problems.insert(problems.end(), all.problems().begin(), all.problems().end());
}

}  // namespace

std::optional<StepRatios> ReadStepRatios(const std::string& path, const ModelFamily& family,
                                         Problems& problems) {
  if (!IsGiven(path)) return std::nullopt;
  const absl::StatusOr<nlohmann::json> json = ReadJsonObject(path);
  if (!json.ok()) {
    problems.push_back(json.status());
    return std::nullopt;
  }
  JsonFields fields(*json, path);
  StepRatios ratios = ReadSampling(fields, family);
  Problems found = fields.problems();
  const auto experts = json->find("experts");
  if (experts == json->end() || !experts->is_object()) {
    found.push_back(Damaged(path, "\"experts\" must be an object with the ratios of each expert"));
  } else {
    ReadExperts(*experts, path, family, ratios, found);
  }
  problems.insert(problems.end(), found.begin(), found.end());
  if (!found.empty()) return std::nullopt;
  return ratios;
}

}  // namespace wan
