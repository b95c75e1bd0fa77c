// Builds the map of optimization options: each option's state, its possible gain, and its measured
// gain in every pair of runs that differs in it alone.
#include <algorithm>
#include <array>
#include <cstddef>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "client/reports/comparison.h"
#include "client/reports/sections.h"
#include "client/reports/step_changes.h"
#include "client/reports/verdict.h"

namespace wan::client::reports {
namespace {

using wan::v1::JobReport;
using Causes = std::vector<Difference>;

// Returns the index of a value in a list; the length of the list if the value is missing.
template <size_t kSize>
size_t Rank(const std::array<std::string_view, kSize>& ranks, const std::string& value) {
  return static_cast<size_t>(std::find(ranks.begin(), ranks.end(), value) - ranks.begin());
}

// Whether the list has the value after the change later than the value before.
template <size_t kSize>
bool Rises(const std::array<std::string_view, kSize>& ranks, const Difference& one) {
  const size_t before = Rank(ranks, one.before), after = Rank(ranks, one.after);
  return before < after && after < kSize;
}

bool IsOnly(const Causes& causes, std::string_view setting, std::string_view before,
            std::string_view after) {
  return causes.size() == 1 && causes[0].setting == setting && causes[0].before == before &&
         causes[0].after == after;
}

bool BatchesGuidance(const Causes& causes) {
  return IsOnly(causes, "batched_guidance", "no", "yes");
}

bool UsesTf32(const Causes& causes) { return IsOnly(causes, "vae_precision", "fp32", "tf32"); }

bool RecordsForwards(const Causes& causes) {
  return IsOnly(causes, "record_forwards", "no", "yes");
}

// Whether components are kept nearer to the GPU than before the change.
bool OffloadsLess(const Causes& causes) {
  constexpr auto kNearer = std::to_array<std::string_view>({"disk", "stream", "host", "resident"});
  return !causes.empty() && std::all_of(causes.begin(), causes.end(), [&](const Difference& one) {
    return absl::StartsWith(one.setting, "residency_policies ") && Rises(kNearer, one);
  });
}

bool EncodesOnTheCpu(const Causes& causes) {
  return causes.size() == 1 && causes[0].setting == "residency_policies text_encoder" &&
         causes[0].after == "cpu";
}

bool WarmsUp(const Causes& causes) { return IsOnly(causes, "warm_up", "no", "yes"); }

// Whether the transformer or the autoencoder uses fewer bits; TF32 is an option of its own.
bool LowersPrecision(const Causes& causes) {
  constexpr auto kFewerBits = std::to_array<std::string_view>({"fp32", "tf32", "fp16", "bf16"});
  return !causes.empty() && !UsesTf32(causes) &&
         std::all_of(causes.begin(), causes.end(), [&](const Difference& one) {
           return (one.setting == "dtype" || one.setting == "vae_precision") &&
                  Rises(kFewerBits, one);
         });
}

bool LowersQuality(const Causes& causes) {
  constexpr auto kQuicker = std::to_array<std::string_view>({"exact", "high", "fast"});
  return causes.size() == 1 && causes[0].setting == "quality" && Rises(kQuicker, causes[0]);
}

struct Option {
  const char* name;
  // Names the settings that decide the option.
  const char* here;
  // Whether two runs with these differences differ only by this option, which the second run has
  // on.
  bool (*is)(const Causes&);
  // Returns the option's state in a run, and its possible gain there. The ceilings may be null.
  std::string (*in_run)(const JobReport&);
  std::string (*limit)(const JobReport&, const Ceilings* ceilings);
};

std::string GuidanceOf(const JobReport& report) {
  if (!report.plan().guided()) return "no guidance";
  return report.plan().batched_guidance() ? "one batch" : "two forwards";
}

std::string BatchLimit(const JobReport& report, const Ceilings* ceilings) {
  std::string text =
      "Both texts have the same FLOPs in one batch as in two passes; only the weights are read "
      "once instead of twice.";
  double weights = 0;
  for (const wan::v1::ComponentPlan& component : report.plan().components()) {
    if (absl::StartsWith(component.name(), "transformer")) {
      weights = std::max(weights, static_cast<double>(component.weight_bytes()));
    }
  }
  const int steps = report.request().steps();
  if (ceilings != nullptr && ceilings->memory > 0 && weights > 0 && steps > 0) {
    absl::StrAppendFormat(&text, " That is at most %.3f s of this job.",
                          weights / ceilings->memory * steps);
  }
  return text;
}

std::string Precisions(const JobReport& report) {
  std::string text = absl::StrCat("transformer ", report.dtype());
  if (!VaePrecision(report).empty()) {
    absl::StrAppend(&text, ", autoencoder ", VaePrecision(report));
  }
  return text;
}

std::string AutoencoderOf(const JobReport& report) {
  return VaePrecision(report).empty() ? "" : absl::StrCat("autoencoder ", VaePrecision(report));
}

std::string Tf32Limit(const JobReport& report, const Ceilings* /*ceilings*/) {
  return report.dtype() == "fp32"
             ? "It speeds up products whose inputs are fp32 on a GPU with tensor cores; a CPU has "
               "none."
             : "It speeds up an autoencoder that computes in fp32. The transformer computes in "
               "bf16, which TF32 does not touch.";
}

std::string ForwardsOf(const JobReport& report) {
  return report.plan().record_forwards() ? "recorded graphs" : "launched one by one";
}

std::string GraphLimit(const JobReport& /*report*/, const Ceilings* /*ceilings*/) {
  return "It saves the time in which the GPU waits for launches; a forward of seconds has next to "
         "none.";
}

std::string ResidencyOf(const JobReport& report) {
  return absl::StrJoin(report.plan().components(), ", ",
                       [](std::string* out, const wan::v1::ComponentPlan& component) {
                         absl::StrAppend(out, component.name(), "=", component.residency());
                       });
}

double SecondsOf(const JobReport& report, StageKind kind) {
  for (const TimeShare& share : TimeBudget(report)) {
    if (share.kind == kind) return share.seconds;
  }
  return 0;
}

std::string OffloadLimit(const JobReport& report, const Ceilings* /*ceilings*/) {
  return absl::StrFormat(
      "Time: at most the %.2f s of Step_*_Loading and the %.2f s of T5_Encoding. It costs the "
      "weights' memory.",
      SecondsOf(report, StageKind::kLoading), SecondsOf(report, StageKind::kText));
}

std::string EncoderOf(const JobReport& report) {
  for (const wan::v1::ComponentPlan& component : report.plan().components()) {
    if (component.name() == "text_encoder") return component.residency();
  }
  return "";
}

std::string EncoderLimit(const JobReport& report, const Ceilings* /*ceilings*/) {
  for (const wan::v1::ComponentPlan& component : report.plan().components()) {
    if (component.name() != "text_encoder") continue;
    return absl::StrCat("Memory: the encoder's ",
                        MemoryText(static_cast<double>(component.weight_bytes())),
                        ". It costs time.");
  }
  return "Memory: the encoder's weights. It costs time.";
}

std::string WarmthOf(const JobReport& report) {
  const auto found = report.request().labels().find(kWarmLabel);
  if (found == report.request().labels().end()) return "";
  return found->second == "yes" ? "after a warm-up" : "without a warm-up";
}

std::string WarmLimit(const JobReport& report, const Ceilings* /*ceilings*/) {
  const StepHistory history = StepHistoryOf(report);
  if (history.seconds.size() < 3 || history.levels.levels.empty()) {
    return "What a first job of a shape takes longer.";
  }
  return absl::StrFormat(
      "What a first job of a shape takes longer. The first step took %.2f s, a regular one %.2f "
      "s.",
      history.seconds.front(), history.levels.levels.front().seconds);
}

std::string PrecisionLimit(const JobReport& /*report*/, const Ceilings* /*ceilings*/) {
  return "A precision changes the bits: the transformer's those of the latents, the "
         "autoencoder's those of the frames alone.";
}

std::string QualityLimit(const JobReport& report, const Ceilings* /*ceilings*/) {
  return absl::StrFormat(
      "high: at most half of the %.2f s of Step_*_Inference, on a GPU with products of 8 bits. "
      "fast: "
      "also the blocks of the steps that reuse them. Both change the picture "
      "(docs/use/quality.md).",
      SecondsOf(report, StageKind::kInference));
}

constexpr auto kOptions = std::to_array<Option>({
    {"Batched guidance", "guidance_batching", BatchesGuidance, GuidanceOf, BatchLimit},
    {"TF32", "vae_precision: tf32", UsesTf32, AutoencoderOf, Tf32Limit},
    {"Compiling, graphs", "record_forwards", RecordsForwards, ForwardsOf, GraphLimit},
    {"No offloading", "residency_policies", OffloadsLess, ResidencyOf, OffloadLimit},
    {"Text encoder on the CPU", "residency_policies: text_encoder=cpu", EncodesOnTheCpu, EncoderOf,
     EncoderLimit},
    {"Warm-up", "warm_up, warm_up_shapes", WarmsUp, WarmthOf, WarmLimit},
    {"Precision", "dtype, vae_precision", LowersPrecision, Precisions, PrecisionLimit},
    {"8 bits, reused steps", "quality", LowersQuality, QualityOf, QualityLimit},
});

struct Pair {
  const Run* before;
  const Run* after;
  Causes causes;
};

// Returns the pairs of runs of the case that differ only in the option.
std::vector<Pair> PairsOf(const Option& option, const std::vector<const Run*>& medians) {
  std::vector<Pair> pairs;
  for (const Run* before : medians) {
    for (const Run* after : medians) {
      if (before == after) continue;
      Causes causes = CausesOf(DifferencesOf(*before, *after));
      if (option.is(causes)) pairs.push_back({before, after, std::move(causes)});
    }
  }
  return pairs;
}

Verdict JudgeOf(const Pair& pair, const std::vector<Run>& runs) {
  return Judge(MeasuredRuns(*pair.before, runs), MeasuredRuns(*pair.after, runs));
}

// Returns the seconds saved in the first pair whose difference is more than noise; a text if there
// is no such pair.
Cell SavingOf(const std::vector<Pair>& pairs, const std::vector<Run>& runs) {
  for (const Pair& pair : pairs) {
    if (const Verdict verdict = JudgeOf(pair, runs); verdict.saved) return CellOf(verdict.saved);
  }
  return pairs.empty() ? Cell() : Cell("not told apart from noise");
}

// Returns the variant's name as tables show it.
std::string VariantName(const Run& run) { return run.variant.empty() ? "the case" : run.variant; }

std::vector<Cell> RowOf(const Option& option, const Pair& pair, const std::vector<Run>& runs) {
  const Measured old_times = MeasuredRuns(*pair.before, runs),
                 new_times = MeasuredRuns(*pair.after, runs);
  const Verdict verdict = Judge(old_times, new_times);
  const std::optional<double> old_peak = PeakBytes(pair.before->report),
                              new_peak = PeakBytes(pair.after->report);
  Cell growth;
  if (old_peak && new_peak) growth = Number{(*new_peak - *old_peak) / kGibibyte, 2};
  const auto joined = [&](std::string (*text)(const Difference&)) {
    return absl::StrJoin(pair.causes, "; ", [text](std::string* out, const Difference& one) {
      out->append(text(one));
    });
  };
  return {option.name,
          absl::StrCat(VariantName(*pair.before), ": ", joined(TextBefore)),
          absl::StrCat(VariantName(*pair.after), ": ", joined(TextAfter)),
          Number{old_times.median(), 2},
          RunsText(old_times),
          Number{new_times.median(), 2},
          RunsText(new_times),
          CellOf(verdict.saved),
          CellOf(verdict.factor),
          verdict.text,
          growth,
          ResultText(*pair.before, *pair.after, runs)};
}

}  // namespace

Section OptionsMap(const Run& run, const std::vector<Run>& runs,
                   const std::vector<Ceilings>& ceilings) {
  Table options, measured;
  options.columns = {{"Option", "option"},
                     {"Here", "here"},
                     {"In this run", "setting"},
                     {"Measured saving (s)", "measured_seconds"},
                     {"What it can give", "limit"}};
  measured.columns = {{"Option", "option"},
                      {"Before", "before_setting"},
                      {"After", "after_setting"},
                      {"Before (s)", "before_seconds"},
                      {"Before: runs", "before_runs"},
                      {"After (s)", "after_seconds"},
                      {"After: runs", "after_runs"},
                      {"Saved (s)", "saved_seconds"},
                      {"Factor", "factor"},
                      {"Verdict", "verdict"},
                      {"Peak Δ (GiB)", "peak_growth_gib"},
                      {"Result, same seed", "result"}};
  const std::vector<const Run*> medians = MedianRuns(runs, run.name);
  const Ceilings* const known = FindCeilings(ceilings, run.report);
  for (const Option& option : kOptions) {
    const std::vector<Pair> pairs = PairsOf(option, medians);
    options.rows.push_back({option.name, option.here, TextCell(option.in_run(run.report)),
                            SavingOf(pairs, runs), option.limit(run.report, known)});
    for (const Pair& pair : pairs) measured.rows.push_back(RowOf(option, pair, runs));
  }
  DropEmptyColumns(options);
  Section section{absl::StrCat("Options of the Optimization Map, ", run.name), "map", {}, {}};
  section.blocks.push_back(std::move(options));
  if (measured.rows.empty()) {
    section.blocks.push_back(
        Paragraph{"No two runs of this case differ in one of these options alone, so none is "
                  "measured. A request's options are measured by 'original' and 'options' of a "
                  "case, a server's by --compare NAME=HOST:PORT."});
    return section;
  }
  DropEmptyColumns(measured);
  measured.note = absl::StrCat(
      "Every two runs of the case that differ in the option alone, and in what it brings with it. ",
      kVerdictNote, " ", kResultNote);
  section.blocks.push_back(std::move(measured));
  return section;
}

}  // namespace wan::client::reports
