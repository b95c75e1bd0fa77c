// Builds the sections about memory: what each component needs, and what fills the device at the
// job's peak.
#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "client/reports/sections.h"

namespace wan::client::reports {
namespace {

using wan::v1::JobReport;

std::optional<double> Bytes(bool present, uint64_t bytes) {
  return present ? std::optional<double>(static_cast<double>(bytes)) : std::nullopt;
}

// Subtracts the planned workspace of the stage from the stage's activations; the difference is
// never below 0.
void SplitWorkspace(const wan::v1::StagePlan* plan, ComponentMemory& memory) {
  memory.workspace.reset();
  if (plan == nullptr || !plan->has_workspace_bytes() || !memory.activations) return;
  memory.workspace = std::min(static_cast<double>(plan->workspace_bytes()), *memory.activations);
  *memory.activations -= *memory.workspace;
}

void KeepGreatest(uint64_t bytes, std::optional<double>& greatest) {
  greatest = std::max(greatest.value_or(0), static_cast<double>(bytes));
}

// Builds a table of parts and their total. Leaves out parts that the table would show as 0.
class Sum {
 public:
  explicit Sum(std::string title) { table_.columns = {{std::move(title), "part"}, {"GiB", "gib"}}; }

  void Add(const std::string& part, double bytes) {
    if (bytes < 0.005 * kGibibyte) return;
    table_.rows.push_back({part, Number{bytes / kGibibyte, 2}});
  }

  Table Total(const std::string& title, double bytes) {
    table_.rows.push_back({title, Number{bytes / kGibibyte, 2}});
    return std::move(table_);
  }

 private:
  Table table_;
};

// Returns the stage with the most GPU memory, not counting the job as a whole; null if no stage has
// a figure.
const StageReport* PeakStage(const JobReport& report) {
  const StageReport* peak = nullptr;
  for (const StageReport& stage : report.stages()) {
    if (!stage.has_gpu_memory_peak_bytes() || ParseStage(stage.stage()).kind == StageKind::kTotal) {
      continue;
    }
    if (peak == nullptr || stage.gpu_memory_peak_bytes() > peak->gpu_memory_peak_bytes()) {
      peak = &stage;
    }
  }
  return peak;
}

// Returns the bytes of the weights if the job's plan keeps all weights on the GPU; absent if the
// plan moves weights, because then the weights at the peak are unknown.
std::optional<double> ResidentWeights(const JobReport& report) {
  std::optional<double> sum;
  for (const wan::v1::ComponentPlan& component : report.plan().components()) {
    if (component.residency() != "resident") return std::nullopt;
    sum = sum.value_or(0) + static_cast<double>(component.weight_bytes());
  }
  return sum;
}

// Whether the sum of the device's memory has a row for the weights of each component.
bool HasRowsOfComponents(const JobReport& report) {
  const StageReport* const peak = PeakStage(report);
  const std::optional<double> resident = ResidentWeights(report);
  return peak != nullptr && resident && peak->has_gpu_weights_peak_bytes() &&
         *resident <= static_cast<double>(peak->gpu_weights_peak_bytes());
}

// Returns the weights of the components whose names begin with `prefix`: "vae: 2.63 GiB fp32,
// resident". Leaves out the size if the memory table has a row for it.
std::string WeightsText(const JobReport& report, const char* prefix) {
  const bool in_sum = HasRowsOfComponents(report);
  std::vector<std::string> texts;
  for (const wan::v1::ComponentPlan& component : report.plan().components()) {
    if (!absl::StartsWith(component.name(), prefix)) continue;
    const std::string size =
        in_sum ? "" : absl::StrCat(MemoryText(static_cast<double>(component.weight_bytes())), " ");
    texts.push_back(
        absl::StrCat(component.name(), ": ", size, component.dtype(), ", ", component.residency()));
  }
  return absl::StrJoin(texts, "; ");
}

Table DeviceSum(const JobReport& report, const StageReport& stage) {
  Sum sum(absl::StrCat("GPU memory in ", stage.stage()));
  const double peak = static_cast<double>(stage.gpu_memory_peak_bytes());
  const std::optional<double> weights =
      Bytes(stage.has_gpu_weights_peak_bytes(), stage.gpu_weights_peak_bytes());
  if (!weights) {
    sum.Add("Weights, activations and workspace", peak);
  } else {
    double own = *weights;
    if (HasRowsOfComponents(report)) {
      own = *ResidentWeights(report);
      for (const wan::v1::ComponentPlan& component : report.plan().components()) {
        sum.Add(absl::StrCat("Weights of ", component.name()),
                static_cast<double>(component.weight_bytes()));
      }
    } else {
      sum.Add("Weights", own);
    }
    sum.Add("Weights of other models", *weights - own);
    const wan::v1::StagePlan* plan = PlanOf(report, stage.stage());
    const double workspace =
        plan == nullptr ? 0
                        : std::min(static_cast<double>(plan->workspace_bytes()), peak - *weights);
    sum.Add(workspace > 0 ? "Activations" : "Activations and workspace",
            peak - *weights - workspace);
    sum.Add("Workspace of the matrix libraries, as planned", workspace);
  }
  double taken = peak;
  const auto grow = [&](const std::string& part, const std::optional<double>& to) {
    if (!to || *to <= taken) return;
    sum.Add(part, *to - taken);
    taken = *to;
  };
  grow("Kept by the allocator for later",
       Bytes(stage.has_gpu_memory_reserved_peak_bytes(), stage.gpu_memory_reserved_peak_bytes()));
  grow("CUDA's context and other processes",
       Bytes(stage.has_gpu_memory_used_bytes(), stage.gpu_memory_used_bytes()));
  if (!report.system().gpu().has_memory_total_bytes()) return sum.Total("Taken", taken);
  const double total = static_cast<double>(report.system().gpu().memory_total_bytes());
  sum.Add("Free", total - taken);
  return sum.Total(absl::StrCat(report.system().gpu().name(), " has"), std::max(total, taken));
}

// Returns the sum of the machine's memory, for a job without a GPU; absent if a figure is unknown.
std::optional<Table> MachineSum(const JobReport& report) {
  const std::optional<double> process = ProcessPeak(report);
  std::optional<double> used;
  for (const StageReport& stage : report.stages()) {
    if (stage.has_system_memory_used_bytes()) KeepGreatest(stage.system_memory_used_bytes(), used);
  }
  if (!process || !used || !report.system().has_memory_total_bytes()) return std::nullopt;
  const double total = static_cast<double>(report.system().memory_total_bytes());
  const double taken = std::max(*process, *used);
  Sum sum("Memory at the most");
  sum.Add("The server process", *process);
  sum.Add("Everything else", taken - *process);
  sum.Add("Free", total - taken);
  return sum.Total("The machine or its container has", std::max(total, taken));
}

}  // namespace

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
      const wan::v1::StagePlan* plan = PlanOf(report, stage->stage());
      if (plan != nullptr && plan->has_activation_bytes()) {
        KeepGreatest(plan->activation_bytes(), memory.planned_activations);
      }
    }
    memory.note = WeightsText(report, kind.component);
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

Section MemoryProfile(const JobReport& report) {
  Section section{"Model Component Memory Profile", "component_memory", {}, {}};
  Table table;
  table.columns = {{"Component", "component"},
                   {"Weights", "weights"},
                   {"Activations (GiB)", "activations_gib"},
                   {"Planned activations (GiB)", "planned_activations_gib"}};
  bool together = false;
  for (const ComponentMemory& memory : ComponentMemories(report)) {
    table.rows.push_back({memory.component, TextCell(memory.note),
                          CellOf(memory.activations, 2, 1 / kGibibyte),
                          CellOf(memory.planned_activations, 2, 1 / kGibibyte)});
    together = together || (memory.activations && !memory.workspace);
  }
  DropEmptyColumns(table);
  if (table.rows.empty() || table.columns.size() == 1) {
    section.blocks.push_back(Paragraph{"Neither a plan nor GPU memory was recorded."});
    return section;
  }
  if (together) table.note = "Activations have the matrix libraries' workspace included.";
  section.blocks.push_back(std::move(table));
  Chart chart = ComponentMemoryOf(report);
  if (!std::get<BarChart>(chart.data).bars.empty()) section.blocks.push_back(std::move(chart));
  return section;
}

Section MemoryTelemetry(const JobReport& report) {
  Section section{"Memory Telemetry", "memory_telemetry", {}, {}};
  if (const StageReport* stage = PeakStage(report)) {
    section.blocks.push_back(DeviceSum(report, *stage));
  } else if (std::optional<Table> sum = MachineSum(report)) {
    section.blocks.push_back(*std::move(sum));
  } else {
    section.blocks.push_back(Paragraph{"No memory was measured."});
  }
  return section;
}

}  // namespace wan::client::reports
