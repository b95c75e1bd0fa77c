#include "client/wanctl/step_ratios.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "proto/enum_words.h"

namespace wan::client {
namespace {

struct Expert {
  std::string name;
  size_t steps = 0;
  std::vector<double> conditional;
  std::vector<double> unconditional;
};

// Rounds to six digits, because the ratios of two jobs differ in earlier digits anyway.
double Rounded(double ratio) { return std::round(ratio * 1e6) / 1e6; }

// Adds the step's ratios, unless the stage is not a step or is a failed step that ran again.
void Add(const wan::v1::StageReport& stage, std::vector<Expert>& experts) {
  bool computes = false;
  std::vector<double> conditional, unconditional;
  for (const wan::v1::StagePart& part : stage.parts()) {
    const bool with_prompt = part.name() == "forward_conditional";
    if (!with_prompt && part.name() != "forward_unconditional") continue;
    computes = true;
    if (!part.has_change_ratio()) continue;
    (with_prompt ? conditional : unconditional).push_back(Rounded(part.change_ratio()));
  }
  if (!computes || !stage.error().empty()) return;
  if (experts.empty() || experts.back().name != stage.expert()) {
    experts.push_back({.name = stage.expert()});
  }
  Expert& expert = experts.back();
  ++expert.steps;
  const auto append = [](const std::vector<double>& from, std::vector<double>& to) {
    to.insert(to.end(), from.begin(), from.end());
  };
  append(conditional, expert.conditional);
  append(unconditional, expert.unconditional);
}

bool IsComplete(const Expert& expert) {
  const size_t unconditional = expert.unconditional.size();
  return expert.conditional.size() + 1 == expert.steps &&
         (unconditional == 0 || unconditional == expert.conditional.size());
}

}  // namespace

absl::StatusOr<std::string> StepRatiosFile(const wan::v1::JobReport& report,
                                           std::string_view family) {
  std::vector<Expert> experts;
  for (const wan::v1::StageReport& stage : report.stages()) Add(stage, experts);
  if (experts.empty() || report.resumed_steps() > 0 ||
      !std::all_of(experts.begin(), experts.end(), IsComplete)) {
    return absl::FailedPreconditionError(
        "has not measured every step, because it was interrupted or its server cannot measure; run "
        "calibrate again");
  }
  using Json = nlohmann::ordered_json;
  const wan::v1::GenerationRequest& request = report.request();
  const Json guidance =
      std::vector<double>(request.guidance_scale().begin(), request.guidance_scale().end());
  std::string text = absl::StrCat(
      "{\n  \"version\": 1,\n  \"model\": ", Json(std::string(family)).dump(),
      ",\n  \"solver\": ", Json(std::string(WordOf(request.solver()))).dump(),
      ",\n  \"steps\": ", request.steps(), ",\n  \"shift\": ", Json(request.shift()).dump(),
      ",\n  \"guidance_scale\": ", guidance.dump(), ",\n  \"experts\": {");
  for (const Expert& expert : experts) {
    absl::StrAppend(&text, &expert == &experts.front() ? "" : ",", "\n    ",
                    Json(expert.name).dump(),
                    ": {\n      \"conditional\": ", Json(expert.conditional).dump());
    if (!expert.unconditional.empty()) {
      absl::StrAppend(&text, ",\n      \"unconditional\": ", Json(expert.unconditional).dump());
    }
    absl::StrAppend(&text, "\n    }");
  }
  return absl::StrCat(text, "\n  }\n}\n");
}

}  // namespace wan::client
