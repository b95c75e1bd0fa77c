// One measured job, and functions about its stages for the reports.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "wan/v1/telemetry.pb.h"

namespace wan::client::reports {

// The difference between two results of the same request and seed.
struct ResultDifference {
  // Every byte of the latents is the same.
  bool identical = false;
  // |a - b| / |a| over all latents (Frobenius); absent if only digests could be compared.
  std::optional<double> relative;
  // Whether the MP4 files are equal; absent if not compared. They may differ with equal latents if
  // the autoencoder computes differently.
  std::optional<bool> same_video = std::nullopt;
};

struct Run {
  // The name in tables: the case of a benchmark, or the job's name.
  std::string name;
  // Empty for the run with which others are compared; otherwise the option's name, such as
  // "original".
  std::string variant;
  // Number among several runs of one case, from 1.
  int number = 1;
  wan::v1::JobReport report;
  // Difference to the run of the same name without a variant; absent if not compared.
  std::optional<ResultDifference> difference;
};

// Returns a run with name, variant and number from the labels of `wanctl bench`, or else with the
// job's name.
Run RunOf(wan::v1::JobReport report);

// The labels of a benchmark's jobs.
inline constexpr char kCaseLabel[] = "bench_case";
inline constexpr char kVariantLabel[] = "bench_variant";
inline constexpr char kRunLabel[] = "bench_run";
// Number of runs of the case and variant that the benchmark planned.
inline constexpr char kRunsLabel[] = "bench_runs";
// "yes" or "no": whether the server had run the case before; absent if unknown.
inline constexpr char kWarmLabel[] = "bench_warm_up";
// The variant with the settings of Wan's generate.py.
inline constexpr char kOriginalVariant[] = "original";

// Returns the name with its variant and, if there are several runs, its number: "preview (original,
// run 2)".
std::string FullName(const Run& run);

enum class StageKind {
  kInitialization,
  kQueue,
  kPreprocess,
  kText,
  kImage,
  kLoading,
  kLora,
  kInference,
  kDecoding,
  kVideo,
  kTotal,
  kOther,
};

struct StageName {
  StageKind kind = StageKind::kOther;
  // The step's number from 0; -1 if the stage is not a step.
  int step = -1;
};
StageName ParseStage(std::string_view stage);

using wan::v1::StageReport;

// Returns the first stage of the kind; null if there is none.
const StageReport* FindStage(const wan::v1::JobReport& report, StageKind kind);
// Returns all stages of the kind, in the order of their start.
std::vector<const StageReport*> FindStages(const wan::v1::JobReport& report, StageKind kind);
// Returns the seconds of a step without "text_projection", which only the first step of a job has.
double StepSeconds(const StageReport& step);
// Returns the report of the model's load: JobReport.model_load, or the loading stage of the job;
// null if there is none.
const StageReport* ModelLoad(const wan::v1::JobReport& report);

// Returns the seconds of Total_Execution; for an unfinished job, from the first start to the last
// end.
double TotalSeconds(const wan::v1::JobReport& report);
// Returns the seconds from the job's start to the stage's; negative for earlier stages.
double StartSeconds(const wan::v1::JobReport& report, const StageReport& stage);

// Returns the greatest gpu_memory_peak_bytes of the job's stages; absent without a GPU.
std::optional<double> PeakBytes(const wan::v1::JobReport& report);

using StageFigure = std::optional<double> (*)(const StageReport&);
std::optional<double> SmActivity(const StageReport& stage);
std::optional<double> CpuPercent(const StageReport& stage);
std::optional<double> SmClock(const StageReport& stage);
std::optional<double> Load(const StageReport& stage);
// Smaller relative changes of clocks or power are not reported as causes.
inline constexpr double kNotable = 0.04;
// Returns the mean over the stages that have the figure, weighted by seconds; absent if none has
// it.
std::optional<double> WeightedMean(const std::vector<const StageReport*>& stages,
                                   StageFigure figure);

// Returns the mean SM activity of the job: Total_Execution's, or its stages'.
std::optional<double> MeanSmActivity(const wan::v1::JobReport& report);
// Returns seconds times SM activity in percent, counting each moment of the job once although
// stages overlap.
std::optional<double> TotalLoad(const wan::v1::JobReport& report);

// Returns "1280*704"; empty if the request is unknown.
std::string Resolution(const wan::v1::JobReport& report);
// Whether the weights of any component leave the GPU; absent if the plan is unknown.
std::string Offload(const wan::v1::JobReport& report);

// Returns the planned stage of that name; null if there is none.
const wan::v1::StagePlan* PlanOf(const wan::v1::JobReport& report, std::string_view stage);

// A share of a job's time; see TimeBudget.
struct TimeShare {
  std::string name;
  StageKind kind = StageKind::kOther;
  double seconds = 0;
};
// Divides a job's seconds by kind of stage. If stages overlap, time counts for the first in the
// order inference, loading, texts, image, decoding, preprocessing, writing the file. Time outside
// all stages is the last share, kOther. The shares add up to TotalSeconds; kinds without time are
// left out.
std::vector<TimeShare> TimeBudget(const wan::v1::JobReport& report);

}  // namespace wan::client::reports
