#include "engine/inspect/memory_report.h"

#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "engine/api/recorder.h"
#include "engine/planning/device_budget.h"
#include "engine/planning/plan.h"
#include "engine/planning/planned_model.h"

namespace wan {
namespace {

using Json = nlohmann::ordered_json;

constexpr int64_t kBf16Bytes = 2;

std::string ShapeLabel(const VideoShape& shape) {
  return absl::StrCat(shape.width, "x", shape.height, "x", shape.num_frames);
}

// All steps of an expert need the same memory, so the report has only one entry for them.
Json DescribeStages(const GenerationPlan& plan) {
  Json stages = Json::array();
  std::set<ExpertRole> experts;
  size_t step = 0;
  for (const StagePlan& stage : plan.stages) {
    std::string name = NameOf(stage.stage);
    if (stage.stage.kind == StageKind::kStepInference) {
      const ExpertRole expert = plan.steps[step++].expert;
      if (!experts.insert(expert).second) continue;
      name = NameOf(stage.stage.kind);
      if (expert != ExpertRole::kOnly) {
        absl::StrAppend(&name, " (", std::string(NameOf(expert)), " noise)");
      }
    }
    if (stage.weight_bytes + stage.activation_bytes == 0) continue;
    stages.push_back({{"stage", name},
                      {"weight_bytes", stage.weight_bytes},
                      {"activation_bytes", stage.activation_bytes}});
  }
  return stages;
}

Json DescribeVideo(const PlannedModel& model, const VideoShape& shape, bool image,
                   uint64_t job_bytes) {
  GenerationRequest request;
  request.width = shape.width;
  request.height = shape.height;
  request.num_frames = shape.num_frames;
  request.size_is_exact = true;
  InspectedRequest inspected;
  inspected.prompt_tokens = model.transformer.text_len;
  if (!model.few_step.has_value()) inspected.negative_prompt_tokens = model.transformer.text_len;
  if (image || !model.family->accepts_text_only) {
    request.image = std::make_shared<const std::string>();
    inspected.image = ImageSize{shape.width, shape.height};
  }
  const absl::StatusOr<GenerationPlan> plan =
      MakePlan(ResolveRequest(request, model, /*drawn_seed=*/0), model, inspected, {job_bytes});
  Json video = {{"shape", ShapeLabel(shape)}, {"fits", plan.ok()}};
  if (!plan.ok()) {
    std::vector<std::string> reasons;
    for (const FieldViolation& violation : FieldViolationsOf(plan.status())) {
      reasons.push_back(absl::StrCat(violation.field, ": ", violation.description));
    }
    video["message"] = absl::StrJoin(reasons, "; ");
    return video;
  }
  uint64_t host_bytes = 0;
  for (size_t i = 0; i < plan->residency.size(); ++i) {
    const ComponentResidency& entry = plan->residency[i];
    video["policies"][std::string(NameOf(entry.component))] =
        std::string(ResidencyPolicyName(entry.policy));
    const bool waits_there =
        entry.policy != ResidencyPolicy::kResident && entry.policy != ResidencyPolicy::kDisk;
    if (waits_there) host_bytes += model.components[i].bytes;
  }
  video["decode_tiles"] = absl::StrCat(plan->decode_tiles.rows, "x", plan->decode_tiles.columns);
  video["batched_guidance"] = plan->batched_guidance;
  video["prefetch_experts"] = plan->prefetch_experts;
  video["peak_bytes"] = plan->peak_device_bytes;
  video["host_bytes"] = host_bytes;
  video["stages"] = DescribeStages(*plan);
  return video;
}

std::string GiB(const Json& bytes) {
  return absl::StrFormat("%7.2f GiB", bytes.get<double>() / (1 << 30));
}

void AppendVideo(const Json& video, std::string& text) {
  const std::string shape = video["shape"].get<std::string>();
  if (!video["fits"].get<bool>()) {
    absl::StrAppend(&text, "\n", shape, ": does not fit\n  ", video["message"].get<std::string>(),
                    "\n");
    return;
  }
  absl::StrAppend(&text, "\n", shape, ": at most ", GiB(video["peak_bytes"]), ", and ",
                  GiB(video["host_bytes"]), " of weights in host memory\n ");
  for (const auto& [component, policy] : video["policies"].items()) {
    absl::StrAppend(&text, " ", component, " ", policy.get<std::string>(), ",");
  }
  const std::string tiles = video["decode_tiles"].get<std::string>();
  absl::StrAppend(&text, tiles == "1x1" ? " whole frames decoded" : " decoded in tiles ",
                  tiles == "1x1" ? "" : tiles);
  if (video["batched_guidance"].get<bool>()) text += ", guidance in one batch";
  if (video["prefetch_experts"].get<bool>()) text += ", next expert prefetched";
  text += "\n";
  for (const Json& stage : video["stages"]) {
    absl::StrAppend(&text, absl::StrFormat("  %-28s", stage["stage"].get<std::string>()),
                    " weights ", GiB(stage["weight_bytes"]), ", besides ",
                    GiB(stage["activation_bytes"]), "\n");
  }
}

}  // namespace

absl::StatusOr<Json> MemoryReport(const MemoryQuestion& question) {
  const absl::StatusOr<std::unique_ptr<Checkpoint>> checkpoint = Checkpoint::Open(question.path);
  if (!checkpoint.ok()) return checkpoint.status();
  const PlannedModel model = PlanCheckpoint(**checkpoint, kBf16Bytes,
                                            {.residency = question.residency,
                                             .eight_bit_weights = question.eight_bit_weights,
                                             .quality = question.quality});
  uint64_t job_bytes = 0;
  if (question.device_memory_limit > 0) {
    const absl::StatusOr<DeviceBudget> budget =
        ShareDeviceMemory(std::numeric_limits<uint64_t>::max(), question.device_memory_limit);
    if (!budget.ok()) return budget.status();
    job_bytes = budget->job_bytes;
  }
  Json report = {{"path", question.path},
                 {"model", std::string(NameOf(model.family->id))},
                 {"quality", std::string(NameOf(*model.Defaults().quality))},
                 {"device_memory_limit", question.device_memory_limit},
                 {"job_memory", job_bytes},
                 {"components", Json::array()},
                 {"fits", true},
                 {"videos", Json::array()}};
  for (const PlannedComponent& component : model.components) {
    report["components"].push_back(
        {{"name", std::string(NameOf(component.component))}, {"bytes", component.bytes}});
  }
  std::vector<VideoShape> shapes = question.shapes;
  if (shapes.empty()) {
    const GenerationRequest defaults = model.Defaults();
    shapes.push_back({*defaults.width, *defaults.height, *defaults.num_frames});
  }
  for (const VideoShape& shape : shapes) {
    Json video = DescribeVideo(model, shape, question.image, job_bytes);
    if (!video["fits"].get<bool>()) report["fits"] = false;
    report["videos"].push_back(std::move(video));
  }
  return report;
}

std::string MemoryReportText(const Json& report) {
  std::string text =
      absl::StrCat("checkpoint    ", report["path"].get<std::string>(), "\nmodel         ",
                   report["model"].get<std::string>(), ", in bf16, quality ",
                   report["quality"].get<std::string>(), "\ndevice       ");
  if (report["device_memory_limit"].get<uint64_t>() == 0) {
    text += " no limit\n";
  } else {
    absl::StrAppend(&text, GiB(report["device_memory_limit"]), ", of which a job may hold ",
                    GiB(report["job_memory"]), "\n");
  }
  for (const Json& component : report["components"]) {
    absl::StrAppend(&text, absl::StrFormat("%-13s", component["name"].get<std::string>()),
                    GiB(component["bytes"]), "\n");
  }
  for (const Json& video : report["videos"]) AppendVideo(video, text);
  return text;
}

}  // namespace wan
