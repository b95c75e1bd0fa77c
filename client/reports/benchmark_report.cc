#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "client/reports/bottlenecks.h"
#include "client/reports/sections.h"
#include "client/reports/step_changes.h"
#include "client/reports/verdict.h"

namespace wan::client::reports {
namespace {

using wan::v1::JobReport;

// A table with two digits shows less time than this as 0 s.
constexpr double kNoTime = 0.005;

double MeanStep(const std::vector<const StageReport*>& steps) {
  double sum = 0;
  for (const StageReport* step : steps) sum += step->seconds();
  return steps.empty() ? 0 : sum / static_cast<double>(steps.size());
}

std::optional<double> ProcessPeak(const JobReport& report) {
  std::optional<double> peak;
  for (const StageReport& stage : report.stages()) {
    if (!stage.has_process_memory_peak_bytes()) continue;
    peak = std::max(peak.value_or(0), static_cast<double>(stage.process_memory_peak_bytes()));
  }
  return peak;
}

// Returns how many digits of seconds are shown after the point: milliseconds matter only in short
// jobs.
int TimeDigits(const JobReport& report) { return TotalSeconds(report) < 60 ? 3 : 2; }

std::vector<Cell> StageRow(const std::string& name, const StageReport& stage, int digits) {
  const std::optional<double> gpu = stage.has_gpu_memory_peak_bytes()
                                        ? std::optional<double>(stage.gpu_memory_peak_bytes())
                                        : std::nullopt;
  const std::optional<double> system = stage.has_system_memory_used_bytes()
                                           ? std::optional<double>(stage.system_memory_used_bytes())
                                           : std::nullopt;
  const std::optional<double> own = stage.has_process_cpu_percent()
                                        ? std::optional<double>(stage.process_cpu_percent())
                                        : std::nullopt;
  return {name,
          Number{stage.seconds(), digits},
          CellOf(gpu, 2, 1 / kGibibyte),
          CellOf(CpuPercent(stage), 1),
          CellOf(own, 1),
          CellOf(system, 2, 1 / kGibibyte),
          CellOf(SmActivity(stage), 1),
          CellOf(Load(stage), 0)};
}

Facts KeyFacts(const Run& run) {
  const JobReport& report = run.report;
  Facts facts;
  facts.facts.push_back({"Total Duration", "total_seconds", Number{TotalSeconds(report), 2}, "s"});
  if (const std::optional<double> peak = PeakBytes(report)) {
    facts.facts.push_back(
        {"Peak GPU Memory", "peak_gpu_memory_gib", CellOf(peak, 2, 1 / kGibibyte), "GiB"});
  }
  if (const std::optional<double> peak = ProcessPeak(report)) {
    facts.facts.push_back(
        {"Peak Process Memory", "peak_process_memory_gib", CellOf(peak, 2, 1 / kGibibyte), "GiB"});
  }
  if (const std::optional<double> load = TotalLoad(report)) {
    facts.facts.push_back({"Total Compute Load", "total_load", Number{*load, 0},
                           "SM-percent seconds, each moment once"});
  }
  if (report.has_request()) {
    const wan::v1::GenerationRequest& request = report.request();
    facts.facts.push_back({"Video", "video",
                           absl::StrFormat("%s, %d frames, %d steps, seed %d", Resolution(report),
                                           request.num_frames(), request.steps(), request.seed()),
                           ""});
  }
  return facts;
}

Section Statistics(const JobReport& report) {
  const std::vector<const StageReport*> steps = FindStages(report, StageKind::kInference);
  Section section{"Inference Statistics", "inference_statistics", {}, {}};
  if (steps.empty()) {
    section.blocks.push_back(Paragraph{"No step of this attempt has ended."});
    return section;
  }
  const StepHistory history = StepHistoryOf(report);
  double least = steps.front()->seconds(), most = least;
  for (const double seconds : history.seconds) {
    least = std::min(least, seconds);
    most = std::max(most, seconds);
  }
  std::optional<double> load;
  for (const StageReport* step : steps) {
    if (const std::optional<double> value = Load(*step)) load = load.value_or(0) + *value;
  }
  Facts facts;
  facts.facts = {
      {"Avg Time per Step", "mean_step_seconds", Number{MeanStep(steps), 2}, "s"},
      {"Shortest and Longest Step", "step_range", absl::StrFormat("%.2f to %.2f", least, most),
       "s"},
      {"Avg SM Activity", "mean_sm_percent", CellOf(WeightedMean(steps, SmActivity), 1), "%"},
      {"Avg CPU Utilization", "mean_cpu_percent", CellOf(WeightedMean(steps, CpuPercent), 1), "%"},
      {"Total Inference Load", "inference_load", CellOf(load, 0), ""}};
  std::erase_if(facts.facts, [](const Fact& fact) {
    return std::holds_alternative<std::monostate>(fact.value);
  });
  section.blocks.push_back(std::move(facts));
  if (!history.changes.empty()) {
    List list;
    for (const StepChange& change : history.changes) {
      list.items.push_back(absl::StrJoin(change.explanation, " "));
    }
    section.blocks.push_back(Paragraph{"The time of a step changed:"});
    section.blocks.push_back(std::move(list));
  }
  section.blocks.push_back(StepTimesOf(report));
  return section;
}

Section MemoryProfile(const JobReport& report) {
  Section section{"Model Component Memory Profile", "component_memory", {}, {}};
  Table table;
  table.columns = {{"Component", "component"},
                   {"Peak (GiB)", "peak_gib"},
                   {"Weights (GiB)", "weights_gib"},
                   {"Activations (GiB)", "activations_gib"},
                   {"Workspace (GiB)", "workspace_gib"},
                   {"Planned at most (GiB)", "planned_gib"},
                   {"Planned weights (GiB)", "planned_weights_gib"},
                   {"Planned activations (GiB)", "planned_activations_gib"},
                   {"Notes", "notes"}};
  bool measured = false, split = false;
  for (const ComponentMemory& memory : ComponentMemories(report)) {
    table.rows.push_back(
        {memory.component, CellOf(memory.peak, 2, 1 / kGibibyte),
         CellOf(memory.weights, 2, 1 / kGibibyte), CellOf(memory.activations, 2, 1 / kGibibyte),
         CellOf(memory.workspace, 2, 1 / kGibibyte), CellOf(memory.planned, 2, 1 / kGibibyte),
         CellOf(memory.planned_weights, 2, 1 / kGibibyte),
         CellOf(memory.planned_activations, 2, 1 / kGibibyte), TextCell(memory.note)});
    measured = measured || memory.activations;
    split = split || memory.workspace;
  }
  DropEmptyColumns(table);
  if (measured) {
    table.note = absl::StrCat(
        "Peak and weights are what the engine's allocator held. ",
        split ? "It cannot tell the matrix libraries' workspace from tensors: Workspace is the "
                "plan's, and Activations are the rest of the peak."
              : "Activations are the rest of the peak, the matrix libraries' workspace included.");
  }
  if (table.rows.empty()) {
    section.blocks.push_back(Paragraph{"Neither a plan nor GPU memory was recorded."});
    return section;
  }
  section.blocks.push_back(std::move(table));
  Chart chart = ComponentMemoryOf(report);
  if (!std::get<BarChart>(chart.data).bars.empty()) section.blocks.push_back(std::move(chart));
  return section;
}

std::string ResourceOverview(const JobReport& report) {
  const std::optional<double> peak = PeakBytes(report);
  const wan::v1::GpuDescription& gpu = report.system().gpu();
  if (!peak) {
    const std::optional<double> process = ProcessPeak(report);
    if (!process) return "No memory was measured.";
    std::string text = absl::StrFormat("The server process reached %.2f GiB", *process / kGibibyte);
    if (report.system().has_memory_total_bytes()) {
      const double total = static_cast<double>(report.system().memory_total_bytes());
      absl::StrAppendFormat(&text,
                            ", %.1f %% of the %.1f GiB that the machine or its container has",
                            *process / total * 100, total / kGibibyte);
    }
    return text + ".";
  }
  std::string text = absl::StrFormat("Peak GPU memory reached %.2f GiB", *peak / kGibibyte);
  if (!gpu.has_memory_total_bytes()) {
    return text + "; the memory of the card was not recorded.";
  }
  const double total = static_cast<double>(gpu.memory_total_bytes());
  absl::StrAppendFormat(&text, ", %.1f %% of the %.1f GiB of %s.", *peak / total * 100,
                        total / kGibibyte, gpu.name());
  if (report.plan().has_device_memory_limit_bytes()) {
    const double limit = static_cast<double>(report.plan().device_memory_limit_bytes());
    absl::StrAppendFormat(&text, " The job might have used %.1f GiB, so %.1f GiB stayed free.",
                          limit / kGibibyte, std::max(0.0, limit - *peak) / kGibibyte);
  }
  return text;
}

Section Analysis(const Run& run, const Ceilings* ceilings, const std::vector<Run>& runs) {
  Section section{"Performance Analysis", "analysis", {}, {}};
  List list;
  for (const Bottleneck& bottleneck : FindBottlenecks(run, ceilings, runs)) {
    if (list.items.size() == 3) break;
    const Gain gain = GainOf(bottleneck);
    list.items.push_back(absl::StrCat(
        bottleneck.location, ": ", bottleneck.cause,
        gain.seconds ? absl::StrFormat(" %.2f s of the job (%s).", *gain.seconds, gain.basis)
                     : absl::StrFormat(" %.2f s of the job; what a change would save is not known.",
                                       bottleneck.seconds)));
  }
  if (list.items.empty()) {
    section.blocks.push_back(
        Paragraph{"No bottleneck of half a percent of the job or more was found."});
  } else {
    section.blocks.push_back(Paragraph{"Bottlenecks detected:"});
    section.blocks.push_back(std::move(list));
  }
  section.sections.push_back(
      {"Resource Usage Overview", "resources", {Paragraph{ResourceOverview(run.report)}}, {}});
  return section;
}

// Returns a table with the minimum, median and maximum of the runs of each case and variant.
std::optional<Table> Repeats(const std::vector<Run>& runs) {
  Table table;
  table.columns = {{"Case", "case"},
                   {"Variant", "variant"},
                   {"Runs", "runs"},
                   {"Asked for", "asked_runs"},
                   {"Least (s)", "least_seconds"},
                   {"Median (s)", "median_seconds"},
                   {"Most (s)", "most_seconds"},
                   {"Std. dev. (s)", "deviation_seconds"}};
  std::vector<std::pair<std::string, std::string>> groups;
  bool repeated = false;
  for (const Run& run : runs) {
    const std::pair<std::string, std::string> group(run.name, run.variant);
    if (std::find(groups.begin(), groups.end(), group) != groups.end()) continue;
    groups.push_back(group);
    const Measured measured = MeasuredRuns(run, runs);
    const std::vector<double>& seconds = measured.seconds;
    const bool fewer = measured.asked > static_cast<int>(seconds.size());
    repeated = repeated || seconds.size() > 1 || fewer;
    double mean = 0, squares = 0;
    for (const double value : seconds) mean += value / static_cast<double>(seconds.size());
    for (const double value : seconds) squares += (value - mean) * (value - mean);
    const size_t count = seconds.size();
    Cell deviation;
    if (count > 1) deviation = Number{std::sqrt(squares / static_cast<double>(count - 1)), 3};
    table.rows.push_back({run.name, TextCell(run.variant), Number{static_cast<double>(count), 0},
                          fewer ? Cell(Number{static_cast<double>(measured.asked), 0}) : Cell(),
                          Number{seconds.front(), 2}, Number{measured.median(), 2},
                          Number{seconds.back(), 2}, deviation});
    if (fewer) table.note = "Fewer runs ended well than were asked for.";
  }
  if (!repeated) return std::nullopt;
  DropEmptyColumns(table);
  return table;
}

}  // namespace

Table SummaryTable(const std::vector<Run>& runs) {
  Table table;
  table.columns = {{"Case", "case"},
                   {"Res", "resolution"},
                   {"Frames", "frames"},
                   {"Steps", "steps"},
                   {"Offload", "offload"},
                   {"Time(s)", "seconds"},
                   {"s/step", "step_seconds"},
                   {"Mem(GiB)", "gpu_memory_gib"},
                   {"Process Mem(GiB)", "process_memory_gib"},
                   {"SM(%)", "sm_percent"},
                   {"Load", "load"}};
  for (const Run& run : runs) {
    const JobReport& report = run.report;
    const std::vector<const StageReport*> steps = FindStages(report, StageKind::kInference);
    const std::optional<double> peak = PeakBytes(report);
    Cell frames, count, mean;
    if (report.has_request()) {
      frames = Number{static_cast<double>(report.request().num_frames()), 0};
      count = Number{static_cast<double>(report.request().steps()), 0};
    }
    if (!steps.empty()) mean = Number{MeanStep(steps), 2};
    table.rows.push_back({FullName(run), TextCell(Resolution(report)), frames, count,
                          TextCell(Offload(report)), Number{TotalSeconds(report), 2}, mean,
                          CellOf(peak, 2, 1 / kGibibyte),
                          CellOf(ProcessPeak(report), 2, 1 / kGibibyte),
                          CellOf(MeanSmActivity(report), 1), CellOf(TotalLoad(report), 0)});
  }
  DropEmptyColumns(table);
  table.note =
      "Time is Total_Execution, from the start of the attempt to the finished files; waiting and "
      "loading the model are "
      "not in it. s/step is the mean of the steps. SM and Load are of the whole job, each moment "
      "once.";
  const bool has_process =
      std::any_of(table.columns.begin(), table.columns.end(),
                  [](const Column& column) { return column.key == "process_memory_gib"; });
  if (has_process) {
    table.note += " Process Mem is the most that the server process had resident during the job.";
  }
  return table;
}

Table StageTable(const JobReport& report) {
  Table table;
  table.columns = {{"Stage", "stage"},
                   {"Time (s)", "seconds"},
                   {"GPU Mem (GiB)", "gpu_memory_gib"},
                   {"CPU (%)", "cpu_percent"},
                   {"Own CPU (%)", "process_cpu_percent"},
                   {"Sys Mem (GiB)", "system_memory_gib"},
                   {"SM Act (%)", "sm_percent"},
                   {"Comp Load", "load"}};
  const int digits = TimeDigits(report);
  if (const StageReport* load = ModelLoad(report)) {
    table.rows.push_back(StageRow("Model_Initialization *", *load, digits));
    table.note = "* The model was loaded before the job: this is not part of Total_Execution.";
  }
  int folded = 0;
  double folded_seconds = 0;
  for (const StageReport& stage : report.stages()) {
    const StageKind kind = ParseStage(stage.stage()).kind;
    if (kind == StageKind::kTotal || kind == StageKind::kInitialization) continue;
    if ((kind == StageKind::kLoading || kind == StageKind::kLora) && stage.seconds() < kNoTime) {
      ++folded;
      folded_seconds += stage.seconds();
      continue;
    }
    table.rows.push_back(StageRow(stage.stage(), stage, digits));
  }
  if (const StageReport* total = FindStage(report, StageKind::kTotal)) {
    table.rows.push_back(StageRow("Total_Execution", *total, digits));
  }
  DropEmptyColumns(table);
  if (folded > 0) {
    absl::StrAppend(
        &table.note, table.note.empty() ? "" : " ",
        absl::StrFormat("%d loadings took less than 5 ms each, %.3f s together, and have no row.",
                        folded, folded_seconds));
  }
  return table;
}

Section BenchmarkReport(const std::vector<Run>& runs, const std::vector<Ceilings>& ceilings) {
  Section section{"Wan2.2 Benchmark Report", "benchmark", {SummaryTable(runs)}, {}};
  if (std::optional<Table> repeats = Repeats(runs)) section.blocks.push_back(*std::move(repeats));
  if (runs.size() > 1) {
    BarChart bars;
    bars.unit = "seconds";
    for (const Run& run : runs) {
      BarChart::Bar bar{FullName(run), {}};
      for (const TimeShare& share : TimeBudget(run.report)) {
        bar.parts.push_back({share.name, share.seconds});
      }
      bars.bars.push_back(std::move(bar));
    }
    section.blocks.push_back(Chart{"Where each run's seconds went", "runs", std::move(bars)});
  }
  for (const Run* run : Representatives(runs)) {
    Section child{absl::StrCat("Case: ", FullName(*run)), "case", {KeyFacts(*run)}, {}};
    child.sections.push_back({"Stage Breakdown",
                              "stage_breakdown",
                              {StageTable(run->report), TimelineOf(run->report)},
                              {}});
    child.sections.push_back(Statistics(run->report));
    child.sections.push_back(MemoryProfile(run->report));
    if (!run->report.devices().empty()) child.sections.push_back(DeviceSharesOf(run->report));
    child.sections.push_back(Analysis(*run, FindCeilings(ceilings, run->report), runs));
    section.sections.push_back(std::move(child));
  }
  return section;
}

}  // namespace wan::client::reports
