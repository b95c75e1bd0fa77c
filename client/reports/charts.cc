#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/reports/sections.h"
#include "client/reports/step_changes.h"

namespace wan::client::reports {
namespace {

using wan::v1::DeviceSample;
using wan::v1::JobReport;

double SecondsFrom(const google::protobuf::Timestamp& start,
                   const google::protobuf::Timestamp& time) {
  return static_cast<double>(time.seconds() - start.seconds()) +
         (time.nanos() - start.nanos()) / 1e9;
}

const char* GroupOf(StageKind kind) {
  switch (kind) {
    case StageKind::kPreprocess:
      return "Preprocess";
    case StageKind::kText:
      return "T5_Encoding";
    case StageKind::kImage:
      return "VAE_Encoding";
    case StageKind::kLoading:
      return "Step_*_Loading";
    case StageKind::kInference:
      return "Step_*_Inference";
    case StageKind::kDecoding:
      return "VAE_Decoding";
    case StageKind::kVideo:
      return "Video_Encoding";
    default:
      return nullptr;
  }
}

// Adds a series that is made from the samples, or from the stages' means if there are no samples.
template <typename OfSample, typename OfStage>
void AddSeries(const JobReport& report, const std::string& name, double top, TimelineChart& chart,
               OfSample of_sample, OfStage of_stage) {
  TimelineChart::Series series{name, {}, top};
  const StageReport* total = FindStage(report, StageKind::kTotal);
  if (total != nullptr) {
    for (const DeviceSample& sample : report.timeline()) {
      if (const std::optional<double> value = of_sample(sample)) {
        series.points.push_back({SecondsFrom(total->start_time(), sample.time()), *value});
      }
    }
  }
  if (series.points.empty()) {
    for (const StageReport& stage : report.stages()) {
      const StageKind kind = ParseStage(stage.stage()).kind;
      if (GroupOf(kind) == nullptr || kind == StageKind::kVideo) continue;
      if (const std::optional<double> value = of_stage(stage)) {
        series.points.push_back({std::max(0.0, StartSeconds(report, stage)), *value});
      }
    }
  }
  std::erase_if(series.points, [](const Point& point) { return point.x < 0; });
  if (series.points.size() > 1) chart.series.push_back(std::move(series));
}

std::optional<double> Optional(bool present, double value) {
  return present ? std::optional<double>(value) : std::nullopt;
}

// Takes the planned workspace of the stage out of the activations, at most all of them.
void SplitWorkspace(const wan::v1::StagePlan* plan, ComponentMemory& memory) {
  memory.workspace.reset();
  if (plan == nullptr || !plan->has_workspace_bytes() || !memory.activations) return;
  memory.workspace = std::min(static_cast<double>(plan->workspace_bytes()), *memory.activations);
  *memory.activations -= *memory.workspace;
}

void KeepGreatest(uint64_t bytes, std::optional<double>& greatest) {
  greatest = std::max(greatest.value_or(0), static_cast<double>(bytes));
}

}  // namespace

Chart TimelineOf(const JobReport& report) {
  TimelineChart chart;
  for (const StageReport& stage : report.stages()) {
    const char* const group = GroupOf(ParseStage(stage.stage()).kind);
    if (group == nullptr) continue;
    const double start = std::max(0.0, StartSeconds(report, stage));
    chart.bars.push_back({stage.stage(), start, start + stage.seconds(), group});
  }
  AddSeries(
      report, "GPU memory (GiB)", 0, chart,
      [](const DeviceSample& sample) {
        return Optional(sample.has_allocator_bytes(),
                        static_cast<double>(sample.allocator_bytes()) / kGibibyte);
      },
      [](const StageReport& stage) {
        return Optional(stage.has_gpu_memory_peak_bytes(),
                        static_cast<double>(stage.gpu_memory_peak_bytes()) / kGibibyte);
      });
  AddSeries(
      report, "SM activity (%)", 100, chart,
      [](const DeviceSample& sample) {
        return Optional(sample.has_sm_activity_percent(), sample.sm_activity_percent());
      },
      [](const StageReport& stage) { return SmActivity(stage); });
  AddSeries(
      report, "Power (W)", report.system().gpu().power_limit_watts(), chart,
      [](const DeviceSample& sample) {
        return Optional(sample.has_power_watts(), sample.power_watts());
      },
      [](const StageReport& stage) {
        return Optional(stage.has_power_watts(), stage.power_watts());
      });
  AddSeries(
      report, "SM clock (MHz)", report.system().gpu().sm_clock_max_mhz(), chart,
      [](const DeviceSample& sample) {
        return Optional(sample.has_sm_clock_mhz(), sample.sm_clock_mhz());
      },
      [](const StageReport& stage) {
        return Optional(stage.has_sm_clock_mhz(), stage.sm_clock_mhz());
      });
  if (!absl::StartsWith(report.device(), "cuda")) {
    AddSeries(
        report, "All processors (%)", 100, chart,
        [](const DeviceSample& sample) {
          return Optional(sample.has_cpu_percent(), sample.cpu_percent());
        },
        [](const StageReport& stage) { return CpuPercent(stage); });
    AddSeries(
        report, "Of it this server (%)", 100, chart,
        [](const DeviceSample& sample) {
          return Optional(sample.has_process_cpu_percent(), sample.process_cpu_percent());
        },
        [](const StageReport& stage) {
          return Optional(stage.has_process_cpu_percent(), stage.process_cpu_percent());
        });
    AddSeries(
        report, "Process memory (GiB)", 0, chart,
        [](const DeviceSample& sample) {
          return Optional(sample.has_process_memory_bytes(),
                          static_cast<double>(sample.process_memory_bytes()) / kGibibyte);
        },
        [](const StageReport&) { return std::optional<double>(); });
  }
  return {"Stages over time", "timeline", std::move(chart)};
}

Chart StepTimesOf(const JobReport& report) {
  const StepHistory history = StepHistoryOf(report);
  SequenceChart chart;
  chart.runs.push_back({"Seconds of each step", history.seconds});
  for (const StepChange& change : history.changes) {
    const auto at = std::find(history.numbers.begin(), history.numbers.end(), change.step);
    chart.marks.push_back(
        {static_cast<int>(at - history.numbers.begin()),
         absl::StrFormat("%.2f to %.2f s", change.seconds_before, change.seconds_after)});
  }
  return {"Seconds of each step, with changes of the level marked", "steps", std::move(chart)};
}

std::vector<ComponentMemory> ComponentMemories(const JobReport& report) {
  struct Kind {
    const char* title;
    StageKind kind;
    // The beginning of the component's name in the plan, because a model has one or two
    // transformers.
    const char* component;
  };
  constexpr Kind kKinds[] = {{"T5 Encoder", StageKind::kText, "text_encoder"},
                             {"VAE Encoder", StageKind::kImage, "vae"},
                             {"DiT Transformer", StageKind::kInference, "transformer"},
                             {"VAE Decoder", StageKind::kDecoding, "vae"}};
  std::vector<ComponentMemory> memories;
  for (const Kind& kind : kKinds) {
    const std::vector<const StageReport*> stages = FindStages(report, kind.kind);
    if (stages.empty()) continue;
    ComponentMemory memory;
    memory.component = kind.title;
    for (const StageReport* stage : stages) {
      if (stage->has_gpu_memory_peak_bytes() &&
          static_cast<double>(stage->gpu_memory_peak_bytes()) > memory.peak.value_or(0)) {
        memory.peak = static_cast<double>(stage->gpu_memory_peak_bytes());
        if (stage->has_gpu_weights_peak_bytes()) {
          memory.weights = static_cast<double>(stage->gpu_weights_peak_bytes());
          memory.activations = *memory.peak - *memory.weights;
        } else if (stage->has_gpu_memory_start_bytes()) {
          // At the stage's start the GPU held the weights and little else.
          memory.activations = *memory.peak - static_cast<double>(stage->gpu_memory_start_bytes());
        }
        SplitWorkspace(PlanOf(report, stage->stage()), memory);
      }
      if (const wan::v1::StagePlan* plan = PlanOf(report, stage->stage())) {
        if (plan->has_activation_bytes() || plan->has_weight_bytes()) {
          KeepGreatest(plan->weight_bytes() + plan->activation_bytes() + plan->workspace_bytes(),
                       memory.planned);
          KeepGreatest(plan->weight_bytes(), memory.planned_weights);
          KeepGreatest(plan->activation_bytes(), memory.planned_activations);
        }
      }
    }
    std::vector<std::string> notes;
    for (const wan::v1::ComponentPlan& component : report.plan().components()) {
      if (!absl::StartsWith(component.name(), kind.component)) continue;
      notes.push_back(absl::StrCat(component.name(), ": ",
                                   MemoryText(static_cast<double>(component.weight_bytes())), " ",
                                   component.dtype(), ", ", component.residency()));
    }
    for (const std::string& note : notes) {
      absl::StrAppend(&memory.note, memory.note.empty() ? "" : "; ", note);
    }
    memories.push_back(std::move(memory));
  }
  return memories;
}

Chart ComponentMemoryOf(const JobReport& report) {
  BarChart chart;
  chart.unit = "GiB";
  for (const ComponentMemory& memory : ComponentMemories(report)) {
    if (!memory.peak) continue;
    const double activations = memory.activations.value_or(0);
    const double workspace = memory.workspace.value_or(0);
    BarChart::Bar bar{memory.component,
                      {{"weights", (*memory.peak - activations - workspace) / kGibibyte},
                       {"activations", activations / kGibibyte},
                       {"workspace, as planned", workspace / kGibibyte}}};
    if (!memory.workspace) {
      bar.parts.pop_back();
      bar.parts.back().name = "activations and workspace";
    }
    chart.bars.push_back(std::move(bar));
  }
  if (report.system().gpu().has_memory_total_bytes()) {
    chart.limit = static_cast<double>(report.system().gpu().memory_total_bytes()) / kGibibyte;
    chart.limit_name = absl::StrFormat("%s: %.1f GiB", report.system().gpu().name(), chart.limit);
  }
  return {"GPU memory at the peak of each component", "component_memory", std::move(chart)};
}

}  // namespace wan::client::reports
