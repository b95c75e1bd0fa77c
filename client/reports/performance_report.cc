#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "client/reports/bottlenecks.h"
#include "client/reports/sections.h"
#include "client/reports/step_changes.h"

namespace wan::client::reports {
namespace {

using wan::v1::JobReport;

void Push(Facts& facts, std::string name, std::string key, Cell value, std::string unit = "") {
  if (std::holds_alternative<std::monostate>(value)) return;
  facts.facts.push_back({std::move(name), std::move(key), std::move(value), std::move(unit)});
}

std::optional<double> Bytes(bool present, uint64_t bytes) {
  return present ? std::optional<double>(static_cast<double>(bytes)) : std::nullopt;
}

Section SystemContext(const JobReport& report) {
  const wan::v1::SystemDescription& system = report.system();
  const wan::v1::GpuDescription& gpu = system.gpu();
  Facts facts;
  if (!gpu.name().empty()) {
    Push(facts, "Device", "gpu",
         gpu.has_memory_total_bytes()
             ? absl::StrFormat("%s (%.1f GiB)", gpu.name(),
                               static_cast<double>(gpu.memory_total_bytes()) / kGibibyte)
             : gpu.name());
    Push(facts, "UUID", "gpu_uuid", TextCell(gpu.uuid()));
    Push(facts, "Power Limit", "power_limit_watts",
         CellOf(gpu.has_power_limit_watts() ? std::optional<double>(gpu.power_limit_watts())
                                            : std::nullopt,
                0),
         "W");
  }
  std::string machine = system.cpu_name();
  if (system.cpu_cores() > 0)
    absl::StrAppend(&machine, ", ", system.cpu_cores(), " logical processors");
  if (system.has_memory_total_bytes()) {
    absl::StrAppendFormat(&machine, ", %.1f GiB",
                          static_cast<double>(system.memory_total_bytes()) / kGibibyte);
  }
  Push(facts, gpu.name().empty() ? "Device" : "Machine", "machine", TextCell(machine));
  std::vector<std::string> software;
  const auto add = [&software](const std::string& name, const std::string& version) {
    if (!version.empty()) software.push_back(absl::StrCat(name, " ", version));
  };
  add("wanserve", system.server_version());
  add("revision", system.server_revision());
  add("LibTorch", system.libtorch_version());
  add("CUDA", system.cuda_version());
  add("cuDNN", system.cudnn_version());
  add("driver", gpu.driver_version());
  Push(facts, "Software", "software", TextCell(absl::StrJoin(software, " | ")));
  std::string task = report.model();
  if (report.has_request()) {
    absl::StrAppendFormat(&task, " | %s | %d frames | %d steps", Resolution(report),
                          report.request().num_frames(), report.request().steps());
  }
  Push(facts, "Task Config", "task", TextCell(task));
  std::vector<std::string> settings;
  if (!Offload(report).empty()) {
    settings.push_back(Offload(report) == "True" ? "Offload=ON" : "Offload=OFF");
  }
  settings.push_back(absl::StrCat("Precision=", report.dtype()));
  if (QualityOf(report) != kExactQuality) {
    settings.push_back(absl::StrCat("Quality=", QualityOf(report)));
  }
  if (report.plan().eight_bits()) settings.emplace_back("Products and self-attention=8 bits");
  if (const int reused = report.plan().reused_steps_size(); reused > 0) {
    settings.push_back(absl::StrCat("Steps that reuse blocks=", reused, " of ",
                                    report.request().steps(), " (",
                                    absl::StrJoin(report.plan().reused_steps(), ", "), ")"));
  }
  if (!VaePrecision(report).empty()) settings.push_back(absl::StrCat("VAE=", VaePrecision(report)));
  if (report.has_plan() && report.plan().guided()) {
    settings.emplace_back(report.plan().batched_guidance() ? "Guidance=one batch"
                                                           : "Guidance=two forwards");
  }
  if (report.plan().record_forwards()) settings.emplace_back("Forwards=recorded graphs");
  Push(facts, "Settings", "settings", TextCell(absl::StrJoin(settings, " | ")));
  return {"System Context", "system_context", {std::move(facts)}, {}};
}

double RegularStep(const StepHistory& history) {
  // Find the level that has the most steps.
  const StepLevel* longest = nullptr;
  for (const StepLevel& level : history.levels.levels) {
    if (longest == nullptr || level.last - level.first > longest->last - longest->first) {
      longest = &level;
    }
  }
  return longest == nullptr ? 0 : longest->seconds;
}

Section ExecutiveSummary(const JobReport& report) {
  const double total = TotalSeconds(report);
  const StepHistory history = StepHistoryOf(report);
  double denoising = 0, decoding = 0;
  for (const double seconds : history.seconds) denoising += seconds;
  for (const TimeShare& share : TimeBudget(report)) {
    if (share.kind == StageKind::kDecoding) decoding = share.seconds;
  }
  Facts facts;
  Push(facts, "Total Latency", "total_seconds", Number{total, 2}, "s");
  if (!history.seconds.empty()) {
    const double mean = denoising / static_cast<double>(history.seconds.size());
    Push(facts, "Generation Speed", "step_seconds", Number{mean, 2},
         absl::StrFormat("s/step (%.2f steps/s)", mean > 0 ? 1 / mean : 0));
  }
  const int frames = report.request().num_frames();
  if (frames > 0 && total > 0) {
    const double pixels =
        static_cast<double>(frames) * report.request().width() * report.request().height() / 1e6;
    Push(facts, "Video Throughput", "frames_per_second", Number{frames / total, 2},
         absl::StrFormat("frames/s (%.2f MPx/s) over Total_Execution", pixels / total));
    if (denoising + decoding > 0) {
      Push(facts, "Without the rest", "frames_per_second_compute",
           Number{frames / (denoising + decoding), 2},
           "frames/s over the steps and the decoding alone");
    }
  }
  if (const std::optional<double> peak = PeakBytes(report)) {
    const double card = static_cast<double>(report.system().gpu().memory_total_bytes());
    Push(facts, "Peak Memory", "peak_memory_gib", CellOf(peak, 2, 1 / kGibibyte),
         card > 0 ? absl::StrFormat("GiB (%.1f %% of VRAM)", *peak / card * 100) : "GiB");
  }
  Push(facts, "Avg GPU Activity", "mean_sm_percent", CellOf(MeanSmActivity(report), 1),
       "% (Total_Execution)");
  double joules = 0;
  if (const StageReport* whole = FindStage(report, StageKind::kTotal))
    joules = whole->energy_joules();
  if (joules > 0) {
    Push(facts, "Energy", "energy_joules", Number{joules, 0},
         absl::StrFormat("J of the card (%.1f Wh, mean %.0f W)", joules / 3600, joules / total));
  }
  return {"Executive Summary", "executive_summary", {std::move(facts)}, {}};
}

Section PipelineLatency(const JobReport& report) {
  Section section{"Detailed Pipeline Latency", "pipeline_latency", {}, {}};
  const double total = TotalSeconds(report);
  Table table;
  table.columns = {{"Part", "part"}, {"Seconds", "seconds"}, {"Share (%)", "share_percent"}};
  if (const StageReport* load = ModelLoad(report)) {
    table.rows.push_back({"Initialization, before the job", Number{load->seconds(), 2}, Cell()});
  }
  const StepHistory history = StepHistoryOf(report);
  for (const TimeShare& share : TimeBudget(report)) {
    Cell percent;
    if (total > 0) percent = Number{share.seconds / total * 100, 1};
    table.rows.push_back({share.name, Number{share.seconds, 2}, percent});
    if (share.kind != StageKind::kInference || history.seconds.empty()) continue;
    table.rows.push_back({"- First Step", Number{history.seconds.front(), 2}, Cell()});
    table.rows.push_back(
        {"- Stable Step (median of the longest level)", Number{RegularStep(history), 2}, Cell()});
  }
  table.rows.push_back({"Total_Execution", Number{total, 2}, Number{100, 1}});
  table.note =
      "Shares are of Total_Execution and add up to it: time in which two stages overlap counts "
      "once.";
  section.blocks.push_back(std::move(table));
  return section;
}

Section MemoryTelemetry(const JobReport& report) {
  Facts facts;
  const std::string offload = Offload(report);
  if (!offload.empty()) {
    Push(facts, "Allocation Strategy", "allocation",
         std::string(offload == "True" ? "Offload active" : "Everything resident"));
  }
  for (const ComponentMemory& memory : ComponentMemories(report)) {
    std::vector<std::string> parts;
    if (memory.peak) parts.push_back(absl::StrFormat("peak %.2f GiB", *memory.peak / kGibibyte));
    if (memory.weights)
      parts.push_back(absl::StrFormat("weights %.2f GiB", *memory.weights / kGibibyte));
    if (memory.activations) {
      parts.push_back(absl::StrFormat(
          "%s %.2f GiB", memory.workspace ? "activations" : "activations and workspace",
          *memory.activations / kGibibyte));
    }
    if (memory.workspace) {
      parts.push_back(
          absl::StrFormat("workspace %.2f GiB as planned", *memory.workspace / kGibibyte));
    }
    if (memory.planned) {
      parts.push_back(absl::StrFormat("planned at most %.2f GiB", *memory.planned / kGibibyte));
    }
    if (!memory.note.empty()) parts.push_back(memory.note);
    Push(facts, memory.component, absl::StrCat("memory_", memory.component),
         TextCell(absl::StrJoin(parts, ", ")));
  }
  Section section{"Memory Telemetry", "memory_telemetry", {}, {}};
  if (facts.facts.empty()) {
    section.blocks.push_back(Paragraph{"No memory was planned or measured on a device."});
  } else {
    section.blocks.push_back(std::move(facts));
  }
  return section;
}

Section Recommendations(const Run& run, const Ceilings* ceilings, const std::vector<Run>& runs) {
  List list;
  for (const Bottleneck& bottleneck : FindBottlenecks(run, ceilings, runs)) {
    const Gain known = GainOf(bottleneck);
    std::string gain = " How much that saves is not known.";
    if (known.seconds) {
      gain = absl::StrFormat(" It would save %.2f s of %.2f s (%s).", *known.seconds,
                             TotalSeconds(run.report), known.basis);
    }
    list.items.push_back(absl::StrCat(bottleneck.location, ": ", bottleneck.remedy, gain));
  }
  Section section{"Recommendations", "recommendations", {}, {}};
  if (list.items.empty()) {
    section.blocks.push_back(
        Paragraph{"There is none: nothing costs half a percent of the job that need not."});
  } else {
    section.blocks.push_back(std::move(list));
  }
  return section;
}

std::string Comment(const StageReport& stage, const StepHistory& history) {
  std::vector<std::string> comments;
  const StageName name = ParseStage(stage.stage());
  switch (name.kind) {
    case StageKind::kInitialization:
      comments.emplace_back("before the job");
      for (const wan::v1::StagePart& part : stage.parts()) {
        if (part.seconds() < 0.1 * stage.seconds()) continue;
        comments.push_back(absl::StrFormat("%s %.2f s", part.name(), part.seconds()));
      }
      break;
    case StageKind::kText:
      comments.emplace_back("texts");
      break;
    case StageKind::kDecoding:
      comments.emplace_back("frames");
      break;
    case StageKind::kVideo:
      comments.emplace_back("beside the decoding");
      break;
    case StageKind::kInference: {
      if (!stage.expert().empty() && stage.expert() != "only") comments.push_back(stage.expert());
      if (history.reused.contains(name.step)) comments.emplace_back("reuses blocks");
      for (const StepChange& change : history.changes) {
        if (change.step == name.step) {
          comments.push_back(absl::StrFormat("%.2f s from here on", change.seconds_after));
        }
      }
      if (!history.numbers.empty() && name.step == history.numbers.front() &&
          stage.seconds() > RegularStep(history) * (1 + kLevelDifference)) {
        comments.emplace_back("first step");
      }
      break;
    }
    default:
      break;
  }
  for (const std::string& reason : stage.throttle_reasons()) comments.push_back(reason);
  if (!stage.error().empty()) comments.push_back(stage.error());
  return absl::StrJoin(comments, "; ");
}

std::vector<Cell> TraceRow(const StageReport& stage, std::string name, const StepHistory& history) {
  const auto figure = [](bool present, double value) {
    return present ? std::optional<double>(value) : std::nullopt;
  };
  const std::optional<double> start =
      Bytes(stage.has_gpu_memory_start_bytes(), stage.gpu_memory_start_bytes());
  const std::optional<double> end =
      Bytes(stage.has_gpu_memory_end_bytes(), stage.gpu_memory_end_bytes());
  Cell growth;
  if (start && end) growth = Number{(*end - *start) / kGibibyte, 2};
  return {std::move(name),
          Number{stage.seconds(), 2},
          CellOf(SmActivity(stage), 1),
          CellOf(figure(stage.has_tensor_activity_percent(), stage.tensor_activity_percent()), 1),
          CellOf(figure(stage.has_sm_occupancy_percent(), stage.sm_occupancy_percent()), 1),
          CellOf(figure(stage.has_dram_bandwidth_percent(), stage.dram_bandwidth_percent()), 1),
          CellOf(figure(stage.has_power_watts(), stage.power_watts()), 0),
          CellOf(figure(stage.has_sm_clock_mhz(), stage.sm_clock_mhz()), 0),
          CellOf(CpuPercent(stage), 1),
          CellOf(Load(stage), 0),
          CellOf(start, 2, 1 / kGibibyte),
          CellOf(end, 2, 1 / kGibibyte),
          CellOf(Bytes(stage.has_gpu_memory_peak_bytes(), stage.gpu_memory_peak_bytes()), 2,
                 1 / kGibibyte),
          growth,
          TextCell(Comment(stage, history))};
}

Section Trace(const JobReport& report) {
  Table table;
  table.columns = {{"Stage Name", "stage"},
                   {"Time (s)", "seconds"},
                   {"SM %", "sm_percent"},
                   {"Tensor %", "tensor_percent"},
                   {"Occupancy %", "occupancy_percent"},
                   {"DRAM %", "dram_percent"},
                   {"Power (W)", "power_watts"},
                   {"SM MHz", "sm_clock_mhz"},
                   {"CPU %", "cpu_percent"},
                   {"Load", "load"},
                   {"Mem Start", "memory_start_gib"},
                   {"Mem End", "memory_end_gib"},
                   {"Peak Mem", "memory_peak_gib"},
                   {"Mem Δ", "memory_growth_gib"},
                   {"Comment", "comment"}};
  const StepHistory history = StepHistoryOf(report);
  if (const StageReport* load = ModelLoad(report)) {
    table.rows.push_back(TraceRow(*load, "Model_Initialization", history));
  }
  int folded = 0;
  for (const StageReport& stage : report.stages()) {
    const StageName name = ParseStage(stage.stage());
    if (name.kind == StageKind::kTotal || name.kind == StageKind::kInitialization) continue;
    std::string title = stage.stage();
    if (name.kind == StageKind::kInference) title = absl::StrCat("S", name.step);
    if (name.kind == StageKind::kLoading || name.kind == StageKind::kLora) {
      if (stage.seconds() < 0.005) {
        ++folded;
        continue;
      }
      if (name.kind == StageKind::kLoading) title = absl::StrCat("S", name.step, "_Loading");
    }
    table.rows.push_back(TraceRow(stage, std::move(title), history));
  }
  if (const StageReport* total = FindStage(report, StageKind::kTotal)) {
    table.rows.push_back(TraceRow(*total, "Total_Execution", history));
  }
  DropEmptyColumns(table);
  const auto shows = [&table](std::string_view key) {
    return std::any_of(table.columns.begin(), table.columns.end(),
                       [key](const Column& column) { return column.key == key; });
  };
  std::vector<std::string> legend;
  if (shows("sm_percent")) legend.emplace_back("SM % = SM activity, the mean of samples");
  if (shows("load")) legend.emplace_back("Load = seconds x SM %");
  if (shows("memory_peak_gib")) legend.emplace_back("memory is the engine's allocator in GiB");
  legend.emplace_back("a value that was not measured is '-'");
  table.note = absl::StrCat("Legend: ", absl::StrJoin(legend, " | "), ".");
  if (folded > 0) {
    absl::StrAppendFormat(&table.note, " %d loadings under 5 ms have no row.", folded);
  }
  return {"Execution Trace Analysis", "execution_trace", {std::move(table)}, {}};
}

}  // namespace

Section PerformanceAnalysis(const std::vector<Run>& runs, const std::vector<Ceilings>& ceilings) {
  Section section{"Wan2.2 Performance Analysis Report", "performance", {}, {}};
  for (const Run* run : Representatives(runs)) {
    Section child{FullName(*run), "case", {}, {}};
    child.sections.push_back(SystemContext(run->report));
    child.sections.push_back(ExecutiveSummary(run->report));
    child.sections.push_back(PipelineLatency(run->report));
    child.sections.push_back(MemoryTelemetry(run->report));
    child.sections.push_back(Recommendations(*run, FindCeilings(ceilings, run->report), runs));
    child.sections.push_back(Trace(run->report));
    section.sections.push_back(std::move(child));
  }
  return section;
}

}  // namespace wan::client::reports
