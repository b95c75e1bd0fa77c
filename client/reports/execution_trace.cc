// Builds the execution trace, which has the steps and stages that the stage table leaves out. Steps
// without differences share a line.
#include <algorithm>
#include <cstddef>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "client/reports/sections.h"
#include "client/reports/step_changes.h"

namespace wan::client::reports {
namespace {

using wan::v1::JobReport;

// A group of stages that share a line.
struct Line {
  StageKind kind = StageKind::kOther;
  // The level of the steps, as an index in the history; -1 before the first level.
  int level = -1;
  std::string comment;
  std::vector<const StageReport*> stages;
};

// Returns the index of the level that has the step; -1 if none has it.
int LevelOf(const StepHistory& history, int step) {
  for (size_t i = 0; i < history.levels.levels.size(); ++i) {
    const StepLevel& level = history.levels.levels[i];
    if (step >= history.numbers[static_cast<size_t>(level.first)] &&
        step <= history.numbers[static_cast<size_t>(level.last)]) {
      return static_cast<int>(i);
    }
  }
  return -1;
}

// Returns the parts of the model's loading that took a tenth of it or more.
std::vector<std::string> LoadedParts(const StageReport& load) {
  std::vector<std::string> parts;
  for (const wan::v1::StagePart& part : load.parts()) {
    if (part.seconds() < 0.1 * load.seconds()) continue;
    parts.push_back(absl::StrFormat("%s %.2f s", part.name(), part.seconds()));
  }
  return parts;
}

std::vector<std::string> StepComments(const StageReport& step, int number,
                                      const StepHistory& history) {
  std::vector<std::string> comments;
  if (!step.expert().empty() && step.expert() != "only") comments.push_back(step.expert());
  if (history.reused.contains(number)) comments.emplace_back("reuses blocks");
  if (!history.numbers.empty() && number == history.numbers.front() &&
      StepSeconds(step) > history.RegularSeconds() * (1 + kLevelDifference)) {
    comments.emplace_back("first step");
  }
  return comments;
}

std::string Comment(const StageReport& stage, const StepHistory& history) {
  std::vector<std::string> comments;
  const StageName name = ParseStage(stage.stage());
  if (name.kind == StageKind::kInitialization) comments = LoadedParts(stage);
  if (name.kind == StageKind::kVideo) comments.emplace_back("beside the decoding");
  if (name.kind == StageKind::kInference) comments = StepComments(stage, name.step, history);
  for (const std::string& reason : stage.throttle_reasons()) comments.push_back(reason);
  if (!stage.error().empty()) comments.push_back(stage.error());
  return absl::StrJoin(comments, "; ");
}

// Returns the stage's name; for steps "S0 to S4, S6", and for their loadings "S0_Loading".
std::string Title(const Line& line) {
  std::set<int> steps;
  for (const StageReport* stage : line.stages) steps.insert(ParseStage(stage->stage()).step);
  if (line.kind == StageKind::kInference) return StepsText(steps, "S");
  if (line.kind == StageKind::kLoading) return StepsText(steps, "S", "_Loading");
  return line.stages.front()->stage();
}

std::vector<Cell> Row(const Line& line) {
  const auto mean = [&line](StageFigure figure, int digits) {
    return CellOf(WeightedMean(line.stages, figure), digits);
  };
  const StageReport& first = *line.stages.front();
  const StageReport& last = *line.stages.back();
  Cell start, end;
  if (first.has_gpu_memory_start_bytes()) {
    start = Number{static_cast<double>(first.gpu_memory_start_bytes()) / kGibibyte, 2};
  }
  if (last.has_gpu_memory_end_bytes()) {
    end = Number{static_cast<double>(last.gpu_memory_end_bytes()) / kGibibyte, 2};
  }
  return {Title(line),
          mean(TensorActivity, 1),
          mean(SmOccupancy, 1),
          mean(DramBandwidth, 1),
          mean(PowerWatts, 0),
          mean(SmClock, 0),
          start,
          end,
          TextCell(line.comment)};
}

std::vector<Line> LinesOf(const JobReport& report) {
  const StepHistory history = StepHistoryOf(report);
  std::vector<Line> lines;
  const auto add = [&](const StageReport& stage) {
    const StageName name = ParseStage(stage.stage());
    Line line{name.kind, -1, Comment(stage, history), {&stage}};
    const bool of_step = name.kind == StageKind::kInference || name.kind == StageKind::kLoading;
    if (of_step) line.level = LevelOf(history, name.step);
    const auto same = std::find_if(lines.begin(), lines.end(), [&line](const Line& other) {
      return other.kind == line.kind && other.level == line.level && other.comment == line.comment;
    });
    if (!of_step || same == lines.end()) {
      lines.push_back(std::move(line));
    } else {
      same->stages.push_back(&stage);
    }
  };
  if (const StageReport* load = ModelLoad(report)) add(*load);
  for (const StageReport& stage : report.stages()) {
    const StageKind kind = ParseStage(stage.stage()).kind;
    if (kind == StageKind::kTotal || kind == StageKind::kInitialization) continue;
    const bool loads = kind == StageKind::kLoading || kind == StageKind::kLora;
    if (!loads || stage.seconds() >= kNoTime) add(stage);
  }
  if (const StageReport* total = FindStage(report, StageKind::kTotal)) add(*total);
  return lines;
}

}  // namespace

Section ExecutionTrace(const JobReport& report) {
  Table table;
  table.columns = {{"Stage Name", "stage"},
                   {"Tensor %", "tensor_percent"},
                   {"Occupancy %", "occupancy_percent"},
                   {"DRAM %", "dram_percent"},
                   {"Power (W)", "power_watts"},
                   {"SM MHz", "sm_clock_mhz"},
                   {"Mem Start (GiB)", "memory_start_gib"},
                   {"Mem End (GiB)", "memory_end_gib"},
                   {"Comment", "comment"}};
  for (const Line& line : LinesOf(report)) {
    std::vector<Cell> row = Row(line);
    const bool empty = std::all_of(row.begin() + 1, row.end(), [](const Cell& cell) {
      return std::holds_alternative<std::monostate>(cell);
    });
    if (!empty) table.rows.push_back(std::move(row));
  }
  Section section{"Execution Trace Analysis", "execution_trace", {}, {}};
  if (table.rows.empty()) {
    section.blocks.push_back(Paragraph{"Nothing but the time of the stages was recorded."});
    return section;
  }
  DropEmptyColumns(table);
  section.blocks.push_back(std::move(table));
  return section;
}

}  // namespace wan::client::reports
