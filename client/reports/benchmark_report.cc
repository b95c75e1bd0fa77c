#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "client/reports/bottlenecks.h"
#include "client/reports/comparison.h"
#include "client/reports/published.h"
#include "client/reports/sections.h"
#include "client/reports/step_changes.h"
#include "client/reports/verdict.h"

namespace wan::client::reports {
namespace {

using wan::v1::JobReport;

double MeanStep(const std::vector<const StageReport*>& steps) {
  double sum = 0;
  for (const StageReport* step : steps) sum += step->seconds();
  return steps.empty() ? 0 : sum / static_cast<double>(steps.size());
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
      {"Shortest and Longest Step", "step_range", absl::StrFormat("%.2f to %.2f", least, most),
       "s"},
      {"Avg SM Activity", "mean_sm_percent", CellOf(WeightedMean(steps, SmActivity), 1),
       "% of the time in which any warp was resident on an SM"},
      {"Avg Tensor Activity", "mean_tensor_percent", CellOf(WeightedMean(steps, TensorActivity), 1),
       "% of the time in which the tensor cores computed"},
      {"Avg Memory Bandwidth", "mean_dram_percent", CellOf(WeightedMean(steps, DramBandwidth), 1),
       "% of the card's"},
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

// Describes the memory of the server process, and how much of the GPU memory available to the job
// stayed free.
std::string ResourceOverview(const JobReport& report) {
  std::vector<std::string> sentences;
  const std::optional<double> peak = PeakBytes(report);
  const double card = static_cast<double>(report.system().gpu().memory_total_bytes());
  if (peak && report.plan().has_device_memory_limit_bytes()) {
    const double limit = static_cast<double>(report.plan().device_memory_limit_bytes());
    sentences.push_back(absl::StrFormat(
        "%.1f GiB of the %.1f GiB that the job might have used on the GPU stayed free.",
        std::max(0.0, limit - *peak) / kGibibyte, limit / kGibibyte));
  } else if (peak && card > 0) {
    sentences.push_back(
        absl::StrFormat("The job's peak was %.1f %% of the card's memory.", *peak / card * 100));
  }
  if (const std::optional<double> process = ProcessPeak(report)) {
    sentences.push_back(absl::StrFormat(
        "During the job the server process held %.2f GiB of the machine's memory at most.",
        *process / kGibibyte));
  }
  return sentences.empty() ? "No memory was measured." : absl::StrJoin(sentences, " ");
}

Section Analysis(const Run& run, const Ceilings* ceilings, const std::vector<Run>& runs) {
  Section section{"Performance Analysis", "analysis", {}, {}};
  const std::vector<Bottleneck> found = FindBottlenecks(run, ceilings, runs);
  if (found.empty()) {
    section.blocks.push_back(
        Paragraph{"No bottleneck of half a percent of the job or more was found."});
  } else {
    section.blocks.push_back(Paragraph{absl::StrCat(
        "Bottlenecks detected, the largest saving first: ",
        absl::StrJoin(found, "; ",
                      [](std::string* out, const Bottleneck& one) { out->append(one.location); }),
        ".")});
  }
  section.sections.push_back(
      {"Resource Usage Overview", "resources", {Paragraph{ResourceOverview(run.report)}}, {}});
  return section;
}

// The part of a row that tables of single runs and of cases share.
struct Figures {
  Cell frames, steps, step_seconds, peak, process, sm, tensor, load;
};

Figures FiguresOf(const JobReport& report) {
  Figures figures;
  const std::vector<const StageReport*> steps = FindStages(report, StageKind::kInference);
  if (report.has_request()) {
    figures.frames = Number{static_cast<double>(report.request().num_frames()), 0};
    figures.steps = Number{static_cast<double>(report.request().steps()), 0};
  }
  if (!steps.empty()) figures.step_seconds = Number{MeanStep(steps), 2};
  figures.peak = CellOf(PeakBytes(report), 2, 1 / kGibibyte);
  figures.process = CellOf(ProcessPeak(report), 2, 1 / kGibibyte);
  figures.sm = CellOf(MeanSmActivity(report), 1);
  figures.tensor = CellOf(MeanTensorActivity(report), 1);
  figures.load = CellOf(TotalLoad(report), 0);
  return figures;
}

bool Shows(const Table& table, std::string_view key) {
  return std::any_of(table.columns.begin(), table.columns.end(),
                     [key](const Column& column) { return column.key == key; });
}

// Returns a table with one line for each case and variant: its median run, and the spread. If all
// runs had one model, the head of the document names it.
Table CaseTable(const std::vector<Run>& runs) {
  Table table;
  table.columns = {{"Case", "case"},
                   {"Model", "model"},
                   {"Res", "resolution"},
                   {"Frames", "frames"},
                   {"Steps", "steps"},
                   {"Offload", "offload"},
                   {"Runs", "runs"},
                   {"Time(s)", "seconds"},
                   {"Cold(s)", "cold_seconds"},
                   {"Published(s)", "published_seconds"},
                   {"s/step", "step_seconds"},
                   {"Mem(GiB)", "gpu_memory_gib"},
                   {"SM(%)", "sm_percent"},
                   {"Tensor(%)", "tensor_percent"},
                   {"Load", "load"}};
  const bool one_model = std::all_of(runs.begin(), runs.end(), [&runs](const Run& run) {
    return run.report.model() == runs.front().report.model();
  });
  std::set<std::string> names;
  for (const Run& first : runs) {
    if (!names.insert(first.name).second) continue;
    for (const Run* run : MedianRuns(runs, first.name)) {
      const JobReport& report = run->report;
      const Figures figures = FiguresOf(report);
      const Measured measured = MeasuredRuns(*run, runs);
      Cell cold;
      if (const StageReport* load = ModelLoad(report)) {
        cold = Number{measured.median() + load->seconds(), 2};
      }
      table.rows.push_back(
          {run->variant.empty() ? run->name : absl::StrCat(run->name, " (", run->variant, ")"),
           one_model ? Cell() : TextCell(report.model()), TextCell(Resolution(report)),
           figures.frames, figures.steps, TextCell(Offload(report)), RunsText(measured),
           Number{measured.median(), 2}, cold, CellOf(PublishedSeconds(*run)), figures.step_seconds,
           figures.peak, figures.sm, figures.tensor, figures.load});
    }
  }
  DropEmptyColumns(table);
  table.note =
      "Time is Total_Execution, from the start of the attempt to the finished files: the median of "
      "the runs.";
  if (Shows(table, "cold_seconds")) {
    table.note += " Cold adds the loading of the model, which happened before.";
  }
  if (Shows(table, "published_seconds")) absl::StrAppend(&table.note, " ", kPublishedNote);
  table.note += " The other figures are those of the median run";
  if (!Shows(table, "load")) {
    table.note += ".";
  } else if (Shows(table, "tensor_percent")) {
    table.note += "; SM, Tensor and Load count each moment once.";
  } else {
    table.note += "; SM and Load count each moment once.";
  }
  return table;
}

// Returns a line about the largest saving of each case; null if no case has one.
std::optional<List> Savings(const std::vector<Run>& runs, const std::vector<Ceilings>& ceilings) {
  List list;
  for (const Run* run : Representatives(runs)) {
    for (const Bottleneck& one : FindBottlenecks(*run, FindCeilings(ceilings, run->report), runs)) {
      const Gain gain = GainOf(one);
      if (!one.has_remedy || !gain.seconds) continue;
      std::string item = absl::StrFormat("%s: %.2f of %.2f s", run->name, *gain.seconds,
                                         TotalSeconds(run->report));
      if (one.setting.empty()) {
        absl::StrAppend(&item, ". ", one.remedy);
      } else {
        absl::StrAppend(&item, " by ", one.setting, one.value.empty() ? "" : " ", one.value, " (",
                        one.location, one.measured ? "; measured by runs)" : ")");
      }
      list.items.push_back(std::move(item));
      break;
    }
  }
  if (list.items.empty()) return std::nullopt;
  return list;
}

// Adds the frames of each case. The frames are from the first run of the case that has frames and
// no variant.
void AddFrames(const std::vector<Run>& runs, std::vector<Block>& blocks) {
  std::set<std::string> shown;
  for (const Run& run : runs) {
    if (run.frames.empty() || !run.variant.empty() || !shown.insert(run.name).second) continue;
    blocks.emplace_back(Pictures{absl::StrCat("Frames of ", run.name), run.frames});
  }
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
    const Figures figures = FiguresOf(run.report);
    table.rows.push_back({FullName(run), TextCell(Resolution(run.report)), figures.frames,
                          figures.steps, TextCell(Offload(run.report)),
                          Number{TotalSeconds(run.report), 2}, figures.step_seconds, figures.peak,
                          figures.process, figures.sm, figures.load});
  }
  DropEmptyColumns(table);
  table.note =
      "Time is Total_Execution; waiting and loading the model are not in it. s/step is the mean of "
      "the steps.";
  if (Shows(table, "load")) table.note += " SM and Load are of the whole job, each moment once.";
  if (Shows(table, "process_memory_gib")) {
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
    table.note = "* before the job: not part of Total_Execution.";
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
  const auto note = [&table](const std::string& sentence) {
    absl::StrAppend(&table.note, table.note.empty() ? "" : " ", sentence);
  };
  if (const std::set<int> reused = StepHistoryOf(report).reused; !reused.empty()) {
    note(absl::StrCat("These steps reused the blocks of an earlier one: ", StepsText(reused), "."));
  }
  if (folded > 0) {
    note(absl::StrFormat("%d loadings of less than 5 ms, %.3f s together, have no row.", folded,
                         folded_seconds));
  }
  return table;
}

Section BenchmarkReport(const std::vector<Run>& runs, const std::vector<Ceilings>& ceilings) {
  Section section{"Wan2.2 Benchmark Report", "benchmark", {CaseTable(runs)}, {}};
  if (std::optional<List> savings = Savings(runs, ceilings)) {
    section.blocks.push_back(
        Paragraph{"The largest saving of each case, estimated unless runs measured it:"});
    section.blocks.push_back(*std::move(savings));
  }
  AddFrames(runs, section.blocks);
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
    Section child{absl::StrCat("Case: ", FullName(*run)), "case", {}, {}};
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
