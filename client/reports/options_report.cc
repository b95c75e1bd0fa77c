#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

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

// Collects the rows of the table of options, and the bars of its chart.
class BeforeAfter {
 public:
  explicit BeforeAfter(const std::vector<Run>& runs) : runs_(runs) {
    table_.columns = {{"Case", "case"},
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
    bars_.unit = "seconds";
  }

  // Adds a variant, which is compared with the case.
  void AddVariant(const Run& base, const Run& variant) {
    const Pair pair = Ordered(base, variant);
    std::vector<std::string> old_settings, new_settings;
    for (const Difference& difference : DifferencesOf(*pair.before, *pair.after)) {
      old_settings.push_back(TextBefore(difference));
      new_settings.push_back(TextAfter(difference));
    }
    AddRow(pair, variant.variant,
           old_settings.empty() ? "no setting differs" : absl::StrJoin(old_settings, "; "),
           absl::StrJoin(new_settings, "; "));
    for (const Run* run : {pair.before, pair.after}) {
      if (looked_at_.insert(run).second) absl::StrAppend(&cold_, ColdStart(*run));
      BarChart::Bar bar{FullName(*run), {}};
      for (const TimeShare& share : TimeBudget(run->report)) {
        bar.parts.push_back({share.name, share.seconds});
      }
      bars_.bars.push_back(std::move(bar));
    }
  }

  // Adds the pairs of two variants that differ in one option of the map alone. AddVariant has
  // already added each variant's comparison with the case.
  void AddPairsOfVariants(const std::string& name) {
    for (const MapPair& pair : MapPairs(runs_, name)) {
      if (pair.before->variant.empty() || pair.after->variant.empty()) continue;
      const std::vector<Difference> causes = CausesOf(DifferencesOf(*pair.before, *pair.after));
      const auto joined = [&causes](const Run& run, std::string (*text)(const Difference&)) {
        return absl::StrCat(
            run.variant, ": ",
            absl::StrJoin(causes, "; ", [text](std::string* out, const Difference& one) {
              out->append(text(one));
            }));
      };
      AddRow({pair.before, pair.after}, pair.option, joined(*pair.before, TextBefore),
             joined(*pair.after, TextAfter));
    }
  }

  Section Done() {
    Section section{"Before and After of Each Option", "before_after", {}, {}};
    if (table_.rows.empty()) {
      section.blocks.push_back(
          Paragraph{"No run has a counterpart with another setting. 'wanctl bench ... --mode both' "
                    "runs each case with upstream's settings too, and --compare NAME=HOST:PORT on "
                    "a server whose settings differ."});
      return section;
    }
    DropEmptyColumns(table_);
    table_.note = absl::StrCat(
        "Both runs have the same request and seed but for the settings that are named. 'original' "
        "and runs without a warm-up come before the case as it stands, every other option after "
        "it. ",
        kVerdictNote, " ", kResultNote);
    if (!cold_.empty()) {
      absl::StrAppend(&table_.note, cold_,
                      " 'wanctl bench ... --warm-up 1' keeps such starts out of the comparison.");
    }
    section.blocks.push_back(std::move(table_));
    section.blocks.push_back(Chart{"Seconds before and after", "before_after", std::move(bars_)});
    return section;
  }

 private:
  void AddRow(const Pair& pair, const std::string& option, std::string old_settings,
              std::string new_settings) {
    const Run &before = *pair.before, &after = *pair.after;
    const Measured old_times = MeasuredRuns(before, runs_), new_times = MeasuredRuns(after, runs_);
    const Verdict verdict = Judge(old_times, new_times);
    table_.rows.push_back(
        {before.name, option, std::move(old_settings), TextCell(std::move(new_settings)),
         Number{old_times.median(), 2}, RunsText(old_times), Number{new_times.median(), 2},
         RunsText(new_times), CellOf(verdict.saved), CellOf(verdict.factor), verdict.text,
         CellOf(PeakBytes(before.report), 2, 1 / kGibibyte),
         CellOf(PeakBytes(after.report), 2, 1 / kGibibyte), ResultText(before, after, runs_)});
  }

  const std::vector<Run>& runs_;
  Table table_;
  BarChart bars_;
  std::string cold_;
  std::set<const Run*> looked_at_;
};

Section BeforeAndAfter(const std::vector<Run>& runs) {
  BeforeAfter rows(runs);
  for (const Run* variant : Variants(runs)) {
    if (const Run* base = BaseOf(runs, variant->name)) rows.AddVariant(*base, *variant);
  }
  std::set<std::string> names;
  for (const Run& run : runs) {
    if (names.insert(run.name).second) rows.AddPairsOfVariants(run.name);
  }
  return rows.Done();
}

// A card of the hardware matrix: its memory, and from its data sheet the dense bf16 rate with fp32
// sums.
struct Card {
  const char* name;
  // The card's column in JSON.
  const char* key;
  // The driver's name of the card contains this text.
  const char* driver_name;
  double gibibytes;
  double bf16_flops;
};
constexpr Card kCards[] = {{"H200 141 GB", "h200", "H200", 140.4, 989e12},
                           {"H100 80 GB", "h100", "H100", 79.6, 989e12},
                           {"A100 80 GB", "a100_80", "A100", 79.3, 312e12},
                           {"A100 40 GB", "a100_40", "A100", 39.4, 312e12},
                           {"L40S 48 GB", "l40s", "L40S", 44.4, 362e12},
                           {"RTX A6000 48 GB", "a6000", "A6000", 47.5, 155e12},
                           {"RTX 4090 24 GB", "rtx_4090", "4090", 23.5, 165e12}};

// Returns the card on which the job ran; null if it is not in the table.
const Card* CardOf(const JobReport& report) {
  const wan::v1::GpuDescription& gpu = report.system().gpu();
  const double gibibytes = static_cast<double>(gpu.memory_total_bytes()) / kGibibyte;
  for (const Card& card : kCards) {
    // Two cards may have one name; their memory tells them apart.
    if (absl::StrContains(gpu.name(), card.driver_name) &&
        std::abs(gibibytes - card.gibibytes) < 0.1 * card.gibibytes) {
      return &card;
    }
  }
  return nullptr;
}

// Seconds; no estimates for other cards are made for jobs that take less time on the fastest card.
constexpr double kLeastPlanned = 0.01;

struct Need {
  // GPU memory in bytes that the job needs in three modes: all weights stay on the card, one
  // component at a time is on the card, or blocks are streamed.
  double resident = 0;
  double alternating = 0;
  double streamed = 0;
  double flops = 0;
};

// Computes the bytes and FLOPs that a job needs from its plan; nullopt if the plan has no memory
// figures.
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

// Returns the figures of every device; nothing if all cases ran on one device in one precision,
// because then the benchmark's summary has these figures.
std::optional<Table> MeasuredMatrix(const std::vector<Run>& runs) {
  Table table;
  table.columns = {{"Measured on", "gpu"},     {"Memory (GiB)", "memory_gib"},
                   {"Driver", "driver"},       {"Case", "case"},
                   {"Precision", "precision"}, {"s/step", "step_seconds"},
                   {"Time (s)", "seconds"},    {"Peak (GiB)", "peak_gib"}};
  std::set<std::pair<std::string, std::string>> places;
  for (const Run* run : OnEveryMachine(runs)) {
    const JobReport& report = run->report;
    const wan::v1::SystemDescription& system = report.system();
    const std::string precision = BlockPrecision(report.plan(), report.dtype());
    places.emplace(DeviceName(report), precision);
    const StepHistory history = StepHistoryOf(report);
    double mean = 0;
    for (const double seconds : history.seconds) {
      mean += seconds / static_cast<double>(history.seconds.size());
    }
    const uint64_t memory = system.gpu().has_memory_total_bytes()
                                ? system.gpu().memory_total_bytes()
                                : system.memory_total_bytes();
    table.rows.push_back({DeviceName(report),
                          Positive(static_cast<double>(memory), 1, 1 / kGibibyte),
                          TextCell(system.gpu().driver_version()), FullName(*run),
                          TextCell(precision), Number{mean, 2}, Number{TotalSeconds(report), 2},
                          CellOf(PeakBytes(report), 2, 1 / kGibibyte)});
  }
  if (places.size() < 2) return std::nullopt;
  DropEmptyColumns(table);
  return table;
}

// Returns "2.94", the least seconds on the card, or "fits" if the FLOPs give no time, with a mark
// for the way in which the weights fit; an empty cell if the job does not fit.
Cell PlanFor(const Card& card, const Need& need) {
  const double bytes = card.gibibytes * kGibibyte;
  const char* mark = "";
  if (need.resident > bytes) mark = need.alternating <= bytes ? " a" : " s";
  if (need.resident > bytes && need.alternating > bytes && need.streamed * 1.1 > bytes) return {};
  if (need.flops <= 0) return absl::StrCat("fits", mark);
  return absl::StrFormat("%.2f%s", need.flops / card.bf16_flops, mark);
}

// Returns an estimate of the job's seconds on the card: its seconds here, times the ratio of both
// cards' rates. The cell is empty if the weights do not all fit on the card.
Cell ExpectedOn(const Card& card, const Card& here, const Need& need, const JobReport& report) {
  if (need.resident > card.gibibytes * kGibibyte) return {};
  return absl::StrFormat("~%.2f", TotalSeconds(report) * here.bf16_flops / card.bf16_flops);
}

Section Planned(const std::vector<Run>& runs) {
  Section section{"Planned, Not Measured", "planned", {}, {}};
  Table table;
  table.columns = {{"Case", "case"},
                   {"All resident (GiB)", "resident_gib"},
                   {"a: one component at a time (GiB)", "alternating_gib"},
                   {"s: blocks streamed (GiB)", "streamed_gib"}};
  double quickest = 0;
  for (const Card& card : kCards) {
    table.columns.push_back({card.name, card.key});
    quickest = std::max(quickest, card.bf16_flops);
  }
  bool small = false, expected = false;
  for (const Run* run : Representatives(runs)) {
    const std::optional<Need> need = NeedOf(run->report);
    if (!need) continue;
    small = need->flops > 0 && need->flops / quickest < kLeastPlanned;
    if (small) continue;
    std::vector<Cell> row = {run->name, Number{need->resident / kGibibyte, 2},
                             Number{need->alternating / kGibibyte, 2},
                             Number{need->streamed / kGibibyte, 2}};
    for (const Card& card : kCards) row.push_back(PlanFor(card, *need));
    table.rows.push_back(std::move(row));
    const Card* const here = CardOf(run->report);
    if (here == nullptr || need->flops <= 0) continue;
    row = {absl::StrCat(run->name, ", expected"), Cell(), Cell(), Cell()};
    for (const Card& card : kCards) row.push_back(ExpectedOn(card, *here, *need, run->report));
    table.rows.push_back(std::move(row));
    expected = true;
  }
  if (!table.rows.empty()) {
    table.note =
        "Seconds than which a card cannot be faster: the FLOPs of the job's plan, without the "
        "autoencoder's, at the card's dense bf16 rate of the data sheet. A mark says that the "
        "weights do not all fit at once, and how they do: 'a' and 's' are in the titles, and '-' "
        "means that this size does not fit. The memory is the plan's.";
    if (expected) {
      table.note +=
          " 'expected' with '~' is an estimate: what the job took here, at the ratio of the cards' "
          "rates.";
    }
    section.blocks.push_back(std::move(table));
  } else if (small) {
    section.blocks.push_back(
        Paragraph{"These jobs have so few FLOPs that no card's rate limits them."});
  } else {
    section.blocks.push_back(
        Paragraph{"The plans of these jobs have no memory (they ran on a CPU, or were made before "
                  "reports had plans), so nothing is planned for other cards. 'wan_inspect plan' "
                  "plans a request for a card that is not there."});
  }
  return section;
}

Section HardwareMatrix(const std::vector<Run>& runs) {
  Section section{"Hardware Configuration Matrix", "hardware", {}, {}};
  if (std::optional<Table> measured = MeasuredMatrix(runs)) {
    section.sections.push_back({"Measured", "measured", {*std::move(measured)}, {}});
  }
  section.sections.push_back(Planned(runs));
  return section;
}

}  // namespace

Section OptionsReport(const std::vector<Run>& runs, const std::vector<Ceilings>& ceilings) {
  Section section{"Options Before and After, and Hardware", "options", {}, {}};
  section.sections.push_back(BeforeAndAfter(runs));
  section.sections.push_back(OptionsMap(runs, ceilings));
  section.sections.push_back(HardwareMatrix(runs));
  return section;
}

}  // namespace wan::client::reports
