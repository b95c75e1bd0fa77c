// One measured job, and functions about its stages for the reports.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "wan/v1/telemetry.pb.h"

namespace wan::client::reports {

// How the results of two runs of the same request and seed differ.
struct ResultDifference {
  // Whether every byte of the latents is the same.
  bool identical = false;
  // |a - b| / |a| over all latents (Frobenius); absent if only digests could be compared.
  std::optional<double> relative;
  // Whether the MP4 files are equal; absent if they were not compared. The files may differ
  // although the latents are equal, if the autoencoder computes differently.
  std::optional<bool> same_video = std::nullopt;
  // The mean PSNR of the MP4 files' frames in dB; absent if the files are equal or were not
  // compared.
  std::optional<double> psnr = std::nullopt;
};

struct Run {
  // The run's name in tables: the case of a benchmark, or the job's name.
  std::string name;
  // Empty for the run with which variants are compared; otherwise the name of the option, such as
  // "original".
  std::string variant;
  // The run's number among several runs of one case, from 1.
  int number = 1;
  wan::v1::JobReport report;
  // How the result differs from the result of the same case without a variant; absent if they were
  // not compared.
  std::optional<ResultDifference> difference;
  // JPEG files of a few frames of the video, from the first to the last; empty: the report shows
  // none.
  std::vector<std::string> frames = {};
};

// Returns a run whose name, variant and number come from the labels of `wanctl bench`; without
// these labels the job's name is its name.
Run RunOf(wan::v1::JobReport report);

// The labels that `wanctl bench` gives its jobs.
inline constexpr char kCaseLabel[] = "bench_case";
inline constexpr char kVariantLabel[] = "bench_variant";
inline constexpr char kRunLabel[] = "bench_run";
// The value of kRunsLabel is how many runs of the case and variant the benchmark planned.
inline constexpr char kRunsLabel[] = "bench_runs";
// The value of kWarmLabel is "yes" or "no": whether the server had run the case before; absent if
// unknown.
inline constexpr char kWarmLabel[] = "bench_warm_up";
// The name of the variant that has the settings of Wan's generate.py.
inline constexpr char kOriginalVariant[] = "original";

// Returns the run's name with its variant and, if there are several runs, its number: "preview
// (original, run 2)".
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

// Returns the first stage of the kind; null if the report has none.
const StageReport* FindStage(const wan::v1::JobReport& report, StageKind kind);
// Returns all stages of the kind, in the order of their start.
std::vector<const StageReport*> FindStages(const wan::v1::JobReport& report, StageKind kind);
// Returns the seconds of a step without its part "text_projection", which only the first step of a
// job has.
double StepSeconds(const StageReport& step);
// Returns the report of the model's load: JobReport.model_load, otherwise the loading stage of the
// job; null if there is neither.
const StageReport* ModelLoad(const wan::v1::JobReport& report);

// Returns the seconds of Total_Execution; for a job that has not ended, the seconds from the first
// start to the last end.
double TotalSeconds(const wan::v1::JobReport& report);
// Returns the seconds from the start of the job to the start of the stage; negative if the stage
// started earlier.
double StartSeconds(const wan::v1::JobReport& report, const StageReport& stage);

// Returns the greatest gpu_memory_peak_bytes of the job's stages; absent if the job ran without a
// GPU.
std::optional<double> PeakBytes(const wan::v1::JobReport& report);

// Returns the greatest process_memory_peak_bytes of the job's stages; absent if unknown.
std::optional<double> ProcessPeak(const wan::v1::JobReport& report);

using StageFigure = std::optional<double> (*)(const StageReport&);
std::optional<double> SmActivity(const StageReport& stage);
std::optional<double> TensorActivity(const StageReport& stage);
std::optional<double> SmOccupancy(const StageReport& stage);
std::optional<double> DramBandwidth(const StageReport& stage);
std::optional<double> PowerWatts(const StageReport& stage);
std::optional<double> CpuPercent(const StageReport& stage);
std::optional<double> SmClock(const StageReport& stage);
std::optional<double> Load(const StageReport& stage);
// Loadings of fewer seconds have no line in tables, which would show them as 0.
inline constexpr double kNoTime = 0.005;
// Smaller relative changes of clocks or power are not reported as causes.
inline constexpr double kNotable = 0.04;
// Returns the mean over the stages that have the figure, weighted by seconds; absent if no stage
// has it.
std::optional<double> WeightedMean(const std::vector<const StageReport*>& stages,
                                   StageFigure figure);

// Returns the mean SM activity of the job: that of Total_Execution, otherwise the mean of its
// stages.
std::optional<double> MeanSmActivity(const wan::v1::JobReport& report);
// Returns the share of the job's time in which the tensor cores computed, in percent; absent
// without Total_Execution.
std::optional<double> MeanTensorActivity(const wan::v1::JobReport& report);
// Returns the sum of seconds times SM activity in percent; each moment of the job counts once
// although stages overlap.
std::optional<double> TotalLoad(const wan::v1::JobReport& report);

// Returns "1280*704"; empty if the request is unknown.
std::string Resolution(const wan::v1::JobReport& report);
// Whether the weights of any component leave the GPU; absent if the plan is unknown.
std::string Offload(const wan::v1::JobReport& report);

// Returns the planned stage with that name; null if the plan has none.
const wan::v1::StagePlan* PlanOf(const wan::v1::JobReport& report, std::string_view stage);

// A share of a job's time; see TimeBudget.
struct TimeShare {
  std::string name;
  StageKind kind = StageKind::kOther;
  double seconds = 0;
};
// Divides a job's seconds by kind of stage. If stages overlap, the time counts for the stage that
// comes first in this order: inference, loading, texts, image, decoding, preprocessing, writing the
// file. Time outside all stages is the last share, kOther. The shares add up to TotalSeconds; kinds
// of stages without time are left out.
std::vector<TimeShare> TimeBudget(const wan::v1::JobReport& report);

}  // namespace wan::client::reports
