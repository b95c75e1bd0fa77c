#include "client/reports/run.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace wan::client::reports {
namespace {

using google::protobuf::Timestamp;
using wan::v1::JobReport;

// Subtract whole seconds first: seconds since 1970 as a double are exact only to 0.2 microseconds.
double Seconds(const Timestamp& from, const Timestamp& to) {
  return static_cast<double>(to.seconds() - from.seconds()) + (to.nanos() - from.nanos()) / 1e9;
}

bool Earlier(const Timestamp& a, const Timestamp& b) { return Seconds(a, b) > 0; }

// Returns the start of Total_Execution; without that stage, the start of the first stage.
Timestamp Start(const JobReport& report) {
  if (const StageReport* total = FindStage(report, StageKind::kTotal)) return total->start_time();
  Timestamp start;
  bool found = false;
  for (const StageReport& stage : report.stages()) {
    const StageKind kind = ParseStage(stage.stage()).kind;
    if (kind == StageKind::kQueue || kind == StageKind::kInitialization) continue;
    if (!found || Earlier(stage.start_time(), start)) start = stage.start_time();
    found = true;
  }
  return start;
}

// A set of time intervals, sorted and without overlap.
class Covered {
 public:
  // Adds an interval; returns how much of it was not yet in the set.
  double Add(double from, double to) {
    if (to <= from) return 0;
    double fresh = to - from;
    double grown_from = from, grown_to = to;
    std::vector<std::pair<double, double>> kept;
    for (const auto& [a, b] : stretches_) {
      if (b < from || a > to) {
        kept.emplace_back(a, b);
        continue;
      }
      fresh -= std::max(0.0, std::min(b, to) - std::max(a, from));
      grown_from = std::min(grown_from, a);
      grown_to = std::max(grown_to, b);
    }
    kept.emplace_back(grown_from, grown_to);
    stretches_ = std::move(kept);
    return std::max(0.0, fresh);
  }

 private:
  std::vector<std::pair<double, double>> stretches_;
};

}  // namespace

Run RunOf(wan::v1::JobReport report) {
  Run run;
  const auto& labels = report.request().labels();
  const auto label = [&labels](const char* key) {
    const auto found = labels.find(key);
    return found == labels.end() ? std::string() : found->second;
  };
  run.name = label(kCaseLabel);
  run.variant = label(kVariantLabel);
  const std::string number = label(kRunLabel);
  std::from_chars(number.data(), number.data() + number.size(), run.number);
  if (run.name.empty()) run.name = report.job();
  run.report = std::move(report);
  return run;
}

std::string FullName(const Run& run) {
  std::string more = run.variant;
  if (run.number > 1) absl::StrAppend(&more, more.empty() ? "" : ", ", "run ", run.number);
  return more.empty() ? run.name : absl::StrCat(run.name, " (", more, ")");
}

StageName ParseStage(std::string_view stage) {
  if (stage == "Model_Initialization") return {StageKind::kInitialization};
  if (stage == "Queue_Wait") return {StageKind::kQueue};
  if (stage == "T5_Encoding") return {StageKind::kText};
  if (stage == "VAE_Encoding") return {StageKind::kImage};
  if (stage == "LoRA_Merging") return {StageKind::kLora};
  if (stage == "VAE_Decoding") return {StageKind::kDecoding};
  if (stage == "Video_Encoding") return {StageKind::kVideo};
  if (stage == "Total_Execution") return {StageKind::kTotal};
  if (stage.ends_with("_Preprocess")) return {StageKind::kPreprocess};
  if (!stage.starts_with("Step_")) return {};
  StageName name;
  const char* const end = stage.data() + stage.size();
  const auto [rest, error] = std::from_chars(stage.data() + 5, end, name.step);
  const std::string_view what(rest, static_cast<size_t>(end - rest));
  if (error != std::errc() || name.step < 0) return {};
  if (what == "_Loading") name.kind = StageKind::kLoading;
  if (what == "_Inference") name.kind = StageKind::kInference;
  return name;
}

const StageReport* FindStage(const JobReport& report, StageKind kind) {
  for (const StageReport& stage : report.stages()) {
    if (ParseStage(stage.stage()).kind == kind) return &stage;
  }
  return nullptr;
}

std::vector<const StageReport*> FindStages(const JobReport& report, StageKind kind) {
  std::vector<const StageReport*> stages;
  for (const StageReport& stage : report.stages()) {
    if (ParseStage(stage.stage()).kind == kind) stages.push_back(&stage);
  }
  return stages;
}

double StepSeconds(const StageReport& step) {
  double seconds = step.seconds();
  for (const wan::v1::StagePart& part : step.parts()) {
    if (part.name() == "text_projection") seconds -= part.seconds();
  }
  return seconds;
}

const StageReport* ModelLoad(const JobReport& report) {
  if (report.has_model_load()) return &report.model_load();
  return FindStage(report, StageKind::kInitialization);
}

double TotalSeconds(const JobReport& report) {
  if (const StageReport* total = FindStage(report, StageKind::kTotal)) return total->seconds();
  double last = 0;
  for (const StageReport& stage : report.stages()) {
    last = std::max(last, StartSeconds(report, stage) + stage.seconds());
  }
  return last;
}

double StartSeconds(const JobReport& report, const StageReport& stage) {
  return Seconds(Start(report), stage.start_time());
}

std::optional<double> PeakBytes(const JobReport& report) {
  std::optional<double> peak;
  for (const StageReport& stage : report.stages()) {
    if (!stage.has_gpu_memory_peak_bytes()) continue;
    peak = std::max(peak.value_or(0), static_cast<double>(stage.gpu_memory_peak_bytes()));
  }
  return peak;
}

std::optional<double> ProcessPeak(const JobReport& report) {
  std::optional<double> peak;
  for (const StageReport& stage : report.stages()) {
    if (!stage.has_process_memory_peak_bytes()) continue;
    peak = std::max(peak.value_or(0), static_cast<double>(stage.process_memory_peak_bytes()));
  }
  return peak;
}

std::optional<double> SmActivity(const StageReport& stage) {
  if (!stage.has_sm_activity_percent()) return std::nullopt;
  return stage.sm_activity_percent();
}

std::optional<double> TensorActivity(const StageReport& stage) {
  if (!stage.has_tensor_activity_percent()) return std::nullopt;
  return stage.tensor_activity_percent();
}

std::optional<double> SmOccupancy(const StageReport& stage) {
  if (!stage.has_sm_occupancy_percent()) return std::nullopt;
  return stage.sm_occupancy_percent();
}

std::optional<double> DramBandwidth(const StageReport& stage) {
  if (!stage.has_dram_bandwidth_percent()) return std::nullopt;
  return stage.dram_bandwidth_percent();
}

std::optional<double> PowerWatts(const StageReport& stage) {
  if (!stage.has_power_watts()) return std::nullopt;
  return stage.power_watts();
}

std::optional<double> CpuPercent(const StageReport& stage) {
  if (!stage.has_cpu_percent()) return std::nullopt;
  return stage.cpu_percent();
}

std::optional<double> SmClock(const StageReport& stage) {
  return stage.has_sm_clock_mhz() ? std::optional<double>(stage.sm_clock_mhz()) : std::nullopt;
}

std::optional<double> Load(const StageReport& stage) {
  if (stage.has_load()) return stage.load();
  if (!stage.has_sm_activity_percent()) return std::nullopt;
  return stage.seconds() * stage.sm_activity_percent();
}

std::optional<double> WeightedMean(const std::vector<const StageReport*>& stages,
                                   StageFigure figure) {
  double sum = 0, seconds = 0;
  for (const StageReport* stage : stages) {
    const std::optional<double> value = figure(*stage);
    if (!value) continue;
    sum += *value * stage->seconds();
    seconds += stage->seconds();
  }
  if (seconds <= 0) return std::nullopt;
  return sum / seconds;
}

std::optional<double> MeanSmActivity(const JobReport& report) {
  const std::optional<double> load = TotalLoad(report);
  const double seconds = TotalSeconds(report);
  if (!load || seconds <= 0) return std::nullopt;
  return *load / seconds;
}

std::optional<double> MeanTensorActivity(const JobReport& report) {
  const StageReport* total = FindStage(report, StageKind::kTotal);
  return total == nullptr ? std::nullopt : TensorActivity(*total);
}

std::optional<double> TotalLoad(const JobReport& report) {
  if (const StageReport* total = FindStage(report, StageKind::kTotal)) {
    if (const std::optional<double> load = Load(*total)) return load;
  }
  // Skip the stages that lie within others: LoRA_Merging is part of loading, and the file is
  // written during the decoding.
  std::optional<double> sum;
  for (const StageReport& stage : report.stages()) {
    switch (ParseStage(stage.stage()).kind) {
      case StageKind::kTotal:
      case StageKind::kInitialization:
      case StageKind::kQueue:
      case StageKind::kLora:
      case StageKind::kVideo:
        continue;
      default:
        break;
    }
    if (const std::optional<double> load = Load(stage)) sum = sum.value_or(0) + *load;
  }
  return sum;
}

std::string Resolution(const JobReport& report) {
  if (!report.has_request() || !report.request().has_width()) return "";
  return absl::StrCat(report.request().width(), "*", report.request().height());
}

std::string Offload(const JobReport& report) {
  if (!report.has_plan() || report.plan().components().empty() ||
      !absl::StartsWith(report.device(), "cuda")) {
    return "";
  }
  for (const wan::v1::ComponentPlan& component : report.plan().components()) {
    if (component.residency() != "resident") return "True";
  }
  return "False";
}

const wan::v1::StagePlan* PlanOf(const JobReport& report, std::string_view stage) {
  for (const wan::v1::StagePlan& plan : report.plan().stages()) {
    if (plan.stage() == stage) return &plan;
  }
  return nullptr;
}

std::vector<TimeShare> TimeBudget(const JobReport& report) {
  std::vector<TimeShare> shares = {
      {"Preprocessing", StageKind::kPreprocess},
      {"Text encoding (T5)", StageKind::kText},
      {"Image encoding (VAE)", StageKind::kImage},
      {"Loading of weights", StageKind::kLoading},
      {"Denoising (DiT)", StageKind::kInference},
      {"VAE decoding", StageKind::kDecoding},
      {"Writing the file, after the last frame", StageKind::kVideo},
  };
  constexpr StageKind kOrder[] = {
      StageKind::kInference, StageKind::kLoading,    StageKind::kText, StageKind::kImage,
      StageKind::kDecoding,  StageKind::kPreprocess, StageKind::kVideo};
  const double total = TotalSeconds(report);
  Covered covered;
  double sum = 0;
  for (const StageKind kind : kOrder) {
    for (const StageReport* stage : FindStages(report, kind)) {
      const double from = std::max(0.0, StartSeconds(report, *stage));
      const double to = std::min(total, StartSeconds(report, *stage) + stage->seconds());
      const double fresh = covered.Add(from, to);
      std::find_if(shares.begin(), shares.end(), [kind](const TimeShare& share) {
        return share.kind == kind;
      })->seconds += fresh;
      sum += fresh;
    }
  }
  std::erase_if(shares, [](const TimeShare& share) { return share.seconds <= 0; });
  shares.push_back({"Between the stages", StageKind::kOther, std::max(0.0, total - sum)});
  return shares;
}

}  // namespace wan::client::reports
