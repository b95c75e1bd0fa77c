// One measured job, and what the reports ask about its stages.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "wan/v1/telemetry.pb.h"

namespace wan::client::reports {

// How far a result is from another one of the same request and seed.
struct ResultDifference {
  // Every byte of the latents is the same.
  bool identical = false;
  // |a - b| / |a| over all latents (Frobenius); absent where only digests could be compared.
  std::optional<double> relative;
  // Every byte of the MP4 files is the same, so that the frames are; absent if they were not
  // compared. Frames differ with equal latents where the autoencoder computes differently.
  std::optional<bool> same_video = std::nullopt;
};

struct Run {
  // The row's name in every table: the case of a benchmark, or the job's name.
  std::string name;
  // Which before/after this run belongs to: empty for the run that others are compared with,
  // otherwise the option's name, for example "original".
  std::string variant;
  // Of several runs of one case, from 1.
  int number = 1;
  wan::v1::JobReport report;
  // Against the run without a variant of the same name; absent if nothing was compared.
  std::optional<ResultDifference> difference;
};

// Returns a run whose name, variant and number come from the labels that `wanctl bench` gives its
// jobs, otherwise from the job's name.
Run RunOf(wan::v1::JobReport report);

// The labels of a benchmark's jobs.
inline constexpr char kCaseLabel[] = "bench_case";
inline constexpr char kVariantLabel[] = "bench_variant";
inline constexpr char kRunLabel[] = "bench_run";
// How many runs of the case and variant the benchmark was to make.
inline constexpr char kRunsLabel[] = "bench_runs";
// "yes" or "no": whether the server has run the case before, where `wanctl bench` knows.
inline constexpr char kWarmLabel[] = "bench_warm_up";
// The variant with upstream's settings.
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
  // From 0; -1 if it is no step.
  int step = -1;
};
StageName ParseStage(std::string_view stage);

using wan::v1::StageReport;

// The first stage of the kind; null if there is none.
const StageReport* FindStage(const wan::v1::JobReport& report, StageKind kind);
// All stages of the kind, in the order of their start.
std::vector<const StageReport*> FindStages(const wan::v1::JobReport& report, StageKind kind);
// The seconds of a step without "text_projection", which the first step of every job has, however
// warm the model is.
double StepSeconds(const StageReport& step);
// How the model was loaded: JobReport.model_load, or the stage of a job that found its model being
// loaded; null without.
const StageReport* ModelLoad(const wan::v1::JobReport& report);

// The seconds of Total_Execution, or from the first start to the last end of a job that has not
// ended.
double TotalSeconds(const wan::v1::JobReport& report);
// The seconds from the job's start to the stage's. Negative for what was before.
double StartSeconds(const wan::v1::JobReport& report, const StageReport& stage);

// The greatest gpu_memory_peak_bytes of the job's stages; absent without a GPU.
std::optional<double> PeakBytes(const wan::v1::JobReport& report);

using StageFigure = std::optional<double> (*)(const StageReport&);
std::optional<double> SmActivity(const StageReport& stage);
std::optional<double> CpuPercent(const StageReport& stage);
std::optional<double> SmClock(const StageReport& stage);
std::optional<double> Load(const StageReport& stage);
// A smaller relative change of clocks or power explains nothing.
inline constexpr double kNotable = 0.04;
// The mean over the stages that have the figure, each with the weight of its seconds; absent if
// none has it.
std::optional<double> WeightedMean(const std::vector<const StageReport*>& stages,
                                   StageFigure figure);

// The mean SM activity of the job: Total_Execution's, or that of its stages.
std::optional<double> MeanSmActivity(const wan::v1::JobReport& report);
// Seconds times SM %, each moment of the job once: Total_Execution contains the other stages.
std::optional<double> TotalLoad(const wan::v1::JobReport& report);

// "1280*704", or empty if the request is not known.
std::string Resolution(const wan::v1::JobReport& report);
// True, False, or empty if the plan is not known: whether any component's weights do not stay on
// the GPU.
std::string Offload(const wan::v1::JobReport& report);

// The planned stage of that name; null if there is none.
const wan::v1::StagePlan* PlanOf(const wan::v1::JobReport& report, std::string_view stage);

// What a part of a step's time is: see TimeBudget.
struct TimeShare {
  std::string name;
  StageKind kind = StageKind::kOther;
  double seconds = 0;
};
// Where the seconds of a job went: each moment counts once, for the first of its stages in the
// order inference, loading, texts, image, decoding, preprocessing, writing the file; what no stage
// covers is the last share, kOther. The shares' sum is TotalSeconds. Kinds without time are left
// out.
std::vector<TimeShare> TimeBudget(const wan::v1::JobReport& report);

}  // namespace wan::client::reports
