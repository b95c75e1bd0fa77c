#include <algorithm>
#include <set>
#include <tuple>

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

// Returns, for each variant of every case, the run with the median time, in the order of the runs.
std::vector<const Run*> Variants(const std::vector<Run>& runs) {
  std::vector<const Run*> chosen;
  std::set<std::pair<std::string, std::string>> seen;
  for (const Run& run : runs) {
    if (run.variant.empty() || !seen.insert({run.name, run.variant}).second) continue;
    for (const Run* median : MedianRuns(runs, run.name)) {
      if (median->variant == run.variant) chosen.push_back(median);
    }
  }
  return chosen;
}

// Returns the run of the case with which the others are compared; null if there is none.
const Run* BaseOf(const std::vector<Run>& runs, const std::string& name) {
  for (const Run* run : MedianRuns(runs, name)) {
    if (run->variant.empty()) return run;
  }
  return nullptr;
}

// Returns a sentence about the extra time of the first step after a cold start; empty if there was
// no such time.
std::string ColdStart(const Run& run) {
  const StepHistory history = StepHistoryOf(run.report);
  if (history.seconds.size() < 3 || history.levels.levels.empty()) return "";
  const double regular = history.levels.levels.front().seconds;
  const double first = StepSeconds(*FindStage(run.report, StageKind::kInference));
  if (first < 1.2 * regular) return "";
  return absl::StrFormat(" The first step of %s took %.2f s, a regular one %.2f s.", FullName(run),
                         first, regular);
}

struct Pair {
  const Run* before;
  const Run* after;
};

// Puts the two runs of a pair in order: the original settings and a cold start come before the case
// itself, all other options after it.
Pair Ordered(const Run& base, const Run& variant) {
  const std::vector<Difference> differences = DifferencesOf(base, variant);
  const bool cold = std::any_of(differences.begin(), differences.end(), [](const Difference& one) {
    return one.setting == "warm_up" && one.after == "no";
  });
  if (cold || variant.variant == kOriginalVariant) return {&variant, &base};
  return {&base, &variant};
}

Section BeforeAndAfter(const std::vector<Run>& runs) {
  Section section{"Before and After of Each Option", "before_after", {}, {}};
  Table table;
  table.columns = {{"Case", "case"},
                   {"Option", "option"},
                   {"Before: setting", "before_setting"},
                   {"After: setting", "after_setting"},
                   {"Before (s)", "before_seconds"},
                   {"Before: runs", "before_runs"},
                   {"After (s)", "after_seconds"},
                   {"After: runs", "after_runs"},
                   {"Saved (s)", "saved_seconds"},
                   {"Factor", "factor"},
                   {"Verdict", "verdict"},
                   {"Before: peak (GiB)", "before_peak_gib"},
                   {"After: peak (GiB)", "after_peak_gib"},
                   {"Result, same seed", "result"}};
  BarChart bars;
  bars.unit = "seconds";
  std::string cold;
  std::set<const Run*> looked_at;
  for (const Run* variant : Variants(runs)) {
    const Run* base = BaseOf(runs, variant->name);
    if (base == nullptr) continue;
    const Pair pair = Ordered(*base, *variant);
    const Run *before = pair.before, *after = pair.after;
    std::vector<std::string> old_settings, new_settings;
    for (const Difference& difference : DifferencesOf(*before, *after)) {
      old_settings.push_back(TextBefore(difference));
      new_settings.push_back(TextAfter(difference));
    }
    const Measured old_times = MeasuredRuns(*before, runs), new_times = MeasuredRuns(*after, runs);
    const Verdict verdict = Judge(old_times, new_times);
    table.rows.push_back(
        {base->name, variant->variant,
         old_settings.empty() ? "no setting differs" : absl::StrJoin(old_settings, "; "),
         TextCell(absl::StrJoin(new_settings, "; ")), Number{old_times.median(), 2},
         RunsText(old_times), Number{new_times.median(), 2}, RunsText(new_times),
         CellOf(verdict.saved), CellOf(verdict.factor), verdict.text,
         CellOf(PeakBytes(before->report), 2, 1 / kGibibyte),
         CellOf(PeakBytes(after->report), 2, 1 / kGibibyte), ResultText(*before, *after, runs)});
    for (const Run* run : {before, after}) {
      if (looked_at.insert(run).second) absl::StrAppend(&cold, ColdStart(*run));
      BarChart::Bar bar{FullName(*run), {}};
      for (const TimeShare& share : TimeBudget(run->report)) {
        bar.parts.push_back({share.name, share.seconds});
      }
      bars.bars.push_back(std::move(bar));
    }
  }
  if (table.rows.empty()) {
    section.blocks.push_back(
        Paragraph{"No run has a counterpart with another setting. 'wanctl bench ... --mode both' "
                  "runs each case with upstream's "
                  "settings too, and --compare NAME=HOST:PORT on a server whose settings differ."});
    return section;
  }
  DropEmptyColumns(table);
  table.note = absl::StrCat(
      "Both runs have the same request and seed but for the settings that are named. 'original' "
      "and runs without a warm-up come before the case as it stands, every other option after it. ",
      kVerdictNote, " ", kResultNote);
  if (!cold.empty()) {
    absl::StrAppend(&table.note, cold,
                    " 'wanctl bench ... --warm-up 1' keeps such starts out of the comparison.");
  }
  section.blocks.push_back(std::move(table));
  section.blocks.push_back(Chart{"Seconds before and after", "before_after", std::move(bars)});
  return section;
}

// A card of the hardware matrix: its memory, and from its data sheet the dense bf16 rate with fp32
// sums.
struct Card {
  const char* name;
  double gibibytes;
  double bf16_flops;
};
constexpr Card kCards[] = {{"H200 141 GB", 140.4, 989e12},  {"H100 80 GB", 79.6, 989e12},
                           {"A100 80 GB", 79.3, 312e12},    {"A100 40 GB", 39.4, 312e12},
                           {"L40S 48 GB", 44.4, 362e12},    {"RTX A6000 48 GB", 47.5, 155e12},
                           {"RTX 4090 24 GB", 23.5, 165e12}};

struct Need {
  // Bytes that are needed if everything stays on the card, if one component at a time is there, and
  // if blocks are streamed.
  double resident = 0;
  double alternating = 0;
  double streamed = 0;
  double flops = 0;
};

// Computes the need from the weights and activations of the plan; nothing if the plan has no
// memory.
std::optional<Need> NeedOf(const JobReport& report) {
  Need need;
  double weights = 0, work = 0;
  for (const wan::v1::ComponentPlan& component : report.plan().components()) {
    weights += static_cast<double>(component.weight_bytes());
  }
  bool planned = false;
  for (const wan::v1::StagePlan& stage : report.plan().stages()) {
    // Leave out the autoencoder: its fused kernels compute less than the plan counts, so its floor
    // would be too high.
    if (!absl::StartsWith(stage.stage(), "VAE_")) need.flops += stage.flops();
    if (!stage.has_activation_bytes()) continue;
    planned = true;
    const double own = static_cast<double>(stage.activation_bytes()) +
                       static_cast<double>(stage.workspace_bytes());
    work = std::max(work, own);
    double component_bytes = 0;
    const StageKind kind = ParseStage(stage.stage()).kind;
    for (const wan::v1::ComponentPlan& component : report.plan().components()) {
      const bool transformer = absl::StartsWith(component.name(), "transformer");
      const bool used = kind == StageKind::kInference ? transformer
                        : kind == StageKind::kText    ? component.name() == "text_encoder"
                                                      : component.name() == "vae";
      if (used) {
        component_bytes = std::max(component_bytes, static_cast<double>(component.weight_bytes()));
      }
    }
    need.alternating = std::max(need.alternating, own + component_bytes);
    need.streamed = std::max(need.streamed, own);
  }
  if (!planned || weights <= 0) return std::nullopt;
  need.resident = weights + work;
  // The cards' rates are those of bf16.
  if (report.plan().eight_bits()) need.flops = 0;
  return need;
}

// Returns the name of the card; for a job without a GPU, of the processor.
std::string DeviceName(const JobReport& report) {
  const std::string& name = DeviceNameOf(report);
  return name.empty() ? report.device() : name;
}

// Returns a run of each case, and those of its variants that ran on another device or in another
// precision.
std::vector<const Run*> OnEveryMachine(const std::vector<Run>& runs) {
  std::vector<const Run*> chosen = Representatives(runs);
  const auto place = [](const Run& run) {
    return std::make_tuple(run.name, DeviceName(run.report),
                           BlockPrecision(run.report.plan(), run.report.dtype()));
  };
  std::set<std::tuple<std::string, std::string, std::string>> seen;
  for (const Run* run : chosen) seen.insert(place(*run));
  for (const Run* run : Variants(runs)) {
    if (seen.insert(place(*run)).second) chosen.push_back(run);
  }
  return chosen;
}

// A table, column by column. NOLINTNEXTLINE(readability-function-size)
Section HardwareMatrix(const std::vector<Run>& runs) {
  Section section{"Hardware Configuration Matrix", "hardware", {}, {}};
  Table measured;
  measured.columns = {{"Measured on", "gpu"},     {"Memory (GiB)", "memory_gib"},
                      {"Driver", "driver"},       {"Case", "case"},
                      {"Size", "size"},           {"Frames", "frames"},
                      {"Steps", "steps"},         {"Offload", "offload"},
                      {"Precision", "precision"}, {"s/step", "step_seconds"},
                      {"Time (s)", "seconds"},    {"Peak (GiB)", "peak_gib"}};
  for (const Run* run : OnEveryMachine(runs)) {
    const JobReport& report = run->report;
    const wan::v1::GpuDescription& gpu = report.system().gpu();
    const StepHistory history = StepHistoryOf(report);
    double mean = 0;
    for (const double seconds : history.seconds) {
      mean += seconds / static_cast<double>(history.seconds.size());
    }
    const std::optional<double> memory =
        gpu.has_memory_total_bytes()
            ? std::optional<double>(gpu.memory_total_bytes())
            : (report.system().has_memory_total_bytes()
                   ? std::optional<double>(report.system().memory_total_bytes())
                   : std::nullopt);
    measured.rows.push_back(
        {DeviceName(report), CellOf(memory, 1, 1 / kGibibyte), TextCell(gpu.driver_version()),
         FullName(*run), TextCell(Resolution(report)),
         Number{static_cast<double>(report.request().num_frames()), 0},
         Number{static_cast<double>(report.request().steps()), 0}, TextCell(Offload(report)),
         TextCell(BlockPrecision(report.plan(), report.dtype())), Number{mean, 2},
         Number{TotalSeconds(report), 2}, CellOf(PeakBytes(report), 2, 1 / kGibibyte)});
  }
  DropEmptyColumns(measured);
  section.sections.push_back({"Measured", "measured", {std::move(measured)}, {}});

  Table planned;
  planned.columns = {{"Planned for", "gpu"},
                     {"Memory (GiB)", "memory_gib"},
                     {"Case", "case"},
                     {"Weights", "weights"},
                     {"Needs at least (GiB)", "need_gib"},
                     {"No faster than (s)", "floor_seconds"}};
  for (const Run* run : Representatives(runs)) {
    const std::optional<Need> need = NeedOf(run->report);
    if (!need) continue;
    for (const Card& card : kCards) {
      const double bytes = card.gibibytes * kGibibyte;
      std::string weights = "does not fit at this size";
      double least = need->streamed;
      if (need->resident <= bytes) {
        weights = "all resident";
        least = need->resident;
      } else if (need->alternating <= bytes) {
        weights = "one component at a time";
        least = need->alternating;
      } else if (need->streamed * 1.1 <= bytes) {
        weights = "blocks streamed from the host";
      }
      Cell floor;
      if (need->flops > 0) {
        const double seconds = need->flops / card.bf16_flops;
        floor = Number{seconds, seconds < 1 ? 5 : 2};
      }
      planned.rows.push_back({std::string(card.name), Number{card.gibibytes, 1}, run->name,
                              std::move(weights), Number{least / kGibibyte, 2}, floor});
    }
  }
  Section plan{"Planned, Not Measured", "planned", {}, {}};
  if (planned.rows.empty()) {
    plan.blocks.push_back(
        Paragraph{"The plans of these jobs have no memory (they ran on a CPU, or were made before "
                  "reports had plans), so nothing is "
                  "planned for other cards. 'wan_inspect plan' plans a request for a card that is "
                  "not there."});
  } else {
    planned.note =
        "From this job's plan: its weights and activations, and its FLOPs without the "
        "autoencoder's at the card's dense bf16 rate of the data sheet. No card can be faster than "
        "that with these FLOPs; how much slower it is, only a "
        "run tells.";
    plan.blocks.push_back(std::move(planned));
  }
  section.sections.push_back(std::move(plan));
  return section;
}

}  // namespace

Section OptionsReport(const std::vector<Run>& runs, const std::vector<Ceilings>& ceilings) {
  Section section{"Options Before and After, and Hardware", "options", {}, {}};
  section.sections.push_back(BeforeAndAfter(runs));
  for (const Run* run : Representatives(runs)) {
    section.sections.push_back(OptionsMap(*run, runs, ceilings));
  }
  section.sections.push_back(HardwareMatrix(runs));
  return section;
}

}  // namespace wan::client::reports
