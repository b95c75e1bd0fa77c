#include "engine/inspect/lora_report.h"

#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "engine/api/lora.h"
#include "engine/checkpoint/checkpoint.h"
#include "engine/checkpoint/known_loras.h"
#include "engine/checkpoint/lora_file.h"

namespace wan {
namespace {

using Json = nlohmann::ordered_json;

Json Describe(const std::optional<LoraSchedule>& schedule) {
  if (!schedule.has_value()) return nullptr;
  Json json = {{"steps", schedule->steps}, {"guidance_scale", schedule->guidance_scale}};
  if (schedule->shift) json["shift"] = *schedule->shift;
  if (schedule->boundary_step) json["boundary_step"] = *schedule->boundary_step;
  return json;
}

Json Fail(Json report, const absl::Status& status) {
  report["ok"] = false;
  report["problems"] = Json::array({std::string(status.message())});
  return report;
}

}  // namespace

Json InspectLora(const std::string& path, const std::string& model) {
  Json report = {{"path", path}, {"model", model}};
  const absl::StatusOr<std::unique_ptr<Checkpoint>> checkpoint = Checkpoint::Open(model);
  if (!checkpoint.ok()) return Fail(std::move(report), checkpoint.status());
  const TransformerConfig& config = (*checkpoint)->transformer_config();
  const absl::StatusOr<LoraFile> file = ReadLoraFile(path, config);
  if (!file.ok()) return Fail(std::move(report), file.status());
  const LoraPartDescription part = DescribeLora(*file);
  report["ok"] = true;
  report["kinds"] = part.kinds;
  report["rank"] = part.rank;
  report["tensors"] = part.tensors;
  report["bytes"] = file->bytes;
  report["factor"] = part.min_factor.has_value() ? Json::array({*part.min_factor, *part.max_factor})
                                                 : Json(nullptr);
  report["left_out"] = part.left_out_tensors;
  const bool has_two = (*checkpoint)->num_experts() > 1;
  report["schedule"] = Describe(has_two ? RecogniseSchedule(*file, config) : std::nullopt);
  report["problems"] = Json::array();
  return report;
}

std::string LoraReportText(const Json& report) {
  std::string text;
  const auto line = [&](std::string_view name, const std::string& value) {
    absl::StrAppend(&text, std::string(name), std::string(14 - name.size(), ' '), value, "\n");
  };
  line("path", report["path"].get<std::string>());
  line("for", report["model"].get<std::string>());
  for (const Json& problem : report["problems"]) line("problem", problem.get<std::string>());
  if (!report["ok"].get<bool>()) return text;
  std::string kinds;
  for (const Json& kind : report["kinds"]) {
    absl::StrAppend(&kinds, kinds.empty() ? "" : ", ", kind.get<std::string>());
  }
  line("kind", kinds);
  line("changes", absl::StrCat(report["tensors"].get<int64_t>(), " tensors, rank ",
                               report["rank"].get<int64_t>(), ", ", report["bytes"].get<uint64_t>(),
                               " bytes"));
  if (const Json& factor = report["factor"]; !factor.is_null()) {
    const double least = factor[0].get<double>();
    const double largest = factor[1].get<double>();
    line("factor", least == largest ? absl::StrCat(least) : absl::StrCat(least, " to ", largest));
  }
  for (const Json& name : report["left_out"]) line("left out", name.get<std::string>());
  if (const Json& schedule = report["schedule"]; !schedule.is_null()) {
    line("few steps", schedule.dump());
  }
  return text;
}

}  // namespace wan
