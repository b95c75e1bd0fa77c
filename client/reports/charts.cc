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

}  // namespace wan::client::reports
