// Builds the map of optimization options: each option's state in the cases, its possible gain, and
// the gain that pairs of runs have measured that differ in this option alone.
#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "client/reports/comparison.h"
#include "client/reports/sections.h"
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

// Whether the list has the value after the change at a later place than the value before.
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

// Whether the change keeps components nearer to the GPU.
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

// Whether the change gives the transformer or the autoencoder fewer bits; TF32 is an option of its
// own.
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
  // Whether two runs with these differences differ only by this option, which is on in the second
  // run.
  bool (*is)(const Causes&);
  // Returns the option's state in a run; empty: unknown.
  std::string (*in_run)(const JobReport&);
  // Says what the option can save.
  const char* limit;
  // Returns the most seconds that the option can save in a run. The pointer is null if no run can
  // tell the saving; the result is absent if this run cannot. `ceilings` may be null.
  std::optional<double> (*most)(const JobReport&, const Ceilings* ceilings) = nullptr;
};

std::string GuidanceOf(const JobReport& report) {
  if (!report.plan().guided()) return "no guidance";
  return report.plan().batched_guidance() ? "one batch" : "two forwards";
}

// Returns the seconds saved if every step reads the weights one time fewer.
std::optional<double> MostOfBatch(const JobReport& report, const Ceilings* ceilings) {
  double weights = 0;
  for (const wan::v1::ComponentPlan& component : report.plan().components()) {
    if (absl::StartsWith(component.name(), "transformer")) {
      weights = std::max(weights, static_cast<double>(component.weight_bytes()));
    }
  }
  if (ceilings == nullptr || ceilings->memory <= 0 || weights <= 0) return std::nullopt;
  return weights / ceilings->memory * (report.request().steps() - report.plan().first_step());
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

std::string ForwardsOf(const JobReport& report) {
  return report.plan().record_forwards() ? "recorded graphs" : "launched one by one";
}

// Returns the components that do not stay on the GPU, or "all resident".
std::string ResidencyOf(const JobReport& report) {
  if (report.plan().components().empty()) return "";
  std::vector<std::string> moved;
  for (const wan::v1::ComponentPlan& component : report.plan().components()) {
    if (component.residency() == "resident") continue;
    moved.push_back(absl::StrCat(component.name(), "=", component.residency()));
  }
  return moved.empty() ? "all resident" : absl::StrJoin(moved, ", ");
}

double SecondsOf(const JobReport& report, StageKind kind) {
  for (const TimeShare& share : TimeBudget(report)) {
    if (share.kind == kind) return share.seconds;
  }
  return 0;
}

std::optional<double> MostOfResidency(const JobReport& report, const Ceilings* /*ceilings*/) {
  return SecondsOf(report, StageKind::kLoading) + SecondsOf(report, StageKind::kText);
}

std::string EncoderOf(const JobReport& report) {
  for (const wan::v1::ComponentPlan& component : report.plan().components()) {
    if (component.name() == "text_encoder") return component.residency();
  }
  return "";
}

std::string WarmthOf(const JobReport& report) {
  const auto found = report.request().labels().find(kWarmLabel);
  if (found == report.request().labels().end()) return "";
  return found->second == "yes" ? "after a warm-up" : "without a warm-up";
}

// Returns half of the forwards' time.
std::optional<double> MostOfQuality(const JobReport& report, const Ceilings* /*ceilings*/) {
  if (!absl::StartsWith(report.device(), "cuda")) return std::nullopt;
  return SecondsOf(report, StageKind::kInference) / 2;
}

constexpr auto kOptions = std::to_array<Option>({
    {"Batched guidance", "guidance_batching", BatchesGuidance, GuidanceOf,
     "Time: one batch of both texts has the FLOPs of two passes, but reads the weights once.",
     MostOfBatch},
    {"TF32", "vae_precision: tf32", UsesTf32, AutoencoderOf,
     "Time of an autoencoder in fp32, on a GPU. It does not touch products in bf16."},
    {"Compiling, graphs", "record_forwards", RecordsForwards, ForwardsOf,
     "The time in which the GPU waits for launches; forwards of seconds have next to none."},
    {"No offloading", "residency_policies", OffloadsLess, ResidencyOf,
     "Time of Step_*_Loading and T5_Encoding. It costs the weights' memory.", MostOfResidency},
    {"Text encoder on the CPU", "residency_policies: text_encoder=cpu", EncodesOnTheCpu, EncoderOf,
     "The memory of the encoder's weights. It costs time."},
    {"Warm-up", "warm_up, warm_up_shapes", WarmsUp, WarmthOf,
     "The time that the first job of a shape takes longer."},
    {"Precision", "dtype, vae_precision", LowersPrecision, Precisions,
     "Time. The transformer's changes the bits of the latents, the autoencoder's those of the "
     "frames alone."},
    {"8 bits, reused steps", "quality", LowersQuality, QualityOf,
     "Time, on a GPU with products of 8 bits; 'fast' also skips blocks of some steps. Both change "
     "the picture (docs/use/quality.md).",
     MostOfQuality},
});

// Returns the seconds saved in the first pair of the option whose difference is more than noise; a
// text if there is no such pair, which is empty if the option has no pair.
std::string SavingOf(const Option& option, const std::vector<MapPair>& pairs,
                     const std::vector<Run>& runs) {
  bool measured = false;
  for (const MapPair& pair : pairs) {
    if (std::string_view(pair.option) != option.name) continue;
    measured = true;
    const Verdict verdict =
        Judge(MeasuredRuns(*pair.before, runs), MeasuredRuns(*pair.after, runs));
    if (verdict.saved) return CellText(CellOf(verdict.saved));
  }
  return measured ? "not told apart from noise" : "";
}

// Joins the statements about the cases; empty if nothing is known. If all cases have one statement,
// returns it without names; otherwise adds to each statement the names of its cases.
std::string Joined(const std::vector<const Run*>& cases, const std::vector<std::string>& texts) {
  std::vector<std::pair<std::string, std::vector<std::string>>> joined;
  for (size_t i = 0; i < cases.size(); ++i) {
    if (texts[i].empty()) continue;
    auto known = std::find_if(joined.begin(), joined.end(),
                              [&](const auto& one) { return one.first == texts[i]; });
    if (known == joined.end()) known = joined.insert(joined.end(), {texts[i], {}});
    known->second.push_back(cases[i]->name);
  }
  if (joined.size() == 1 && joined.front().second.size() == cases.size()) {
    return joined.front().first;
  }
  return absl::StrJoin(joined, "; ", [](std::string* out, const auto& one) {
    absl::StrAppend(out, one.first, " (", absl::StrJoin(one.second, ", "), ")");
  });
}

// Returns the largest saving of the option in seconds: "4.2", or "0.017 to 0.08" if cases differ.
std::string MostOf(const Option& option, const std::vector<const Run*>& cases,
                   const std::vector<Ceilings>& ceilings) {
  std::vector<double> seconds;
  for (const Run* run : cases) {
    if (option.most == nullptr) break;
    const auto most = option.most(run->report, FindCeilings(ceilings, run->report));
    if (most) seconds.push_back(*most);
  }
  if (seconds.empty()) return "";
  std::sort(seconds.begin(), seconds.end());
  const std::string least = absl::StrFormat("%.2g", seconds.front());
  const std::string most = absl::StrFormat("%.2g", seconds.back());
  return least == most ? least : absl::StrCat(least, " to ", most);
}

}  // namespace

std::vector<MapPair> MapPairs(const std::vector<Run>& runs, const std::string& name) {
  std::vector<MapPair> pairs;
  const std::vector<const Run*> medians = MedianRuns(runs, name);
  for (const Option& option : kOptions) {
    for (const Run* before : medians) {
      for (const Run* after : medians) {
        if (before == after || !option.is(CausesOf(DifferencesOf(*before, *after)))) continue;
        pairs.push_back({option.name, before, after});
      }
    }
  }
  return pairs;
}

Section OptionsMap(const std::vector<Run>& runs, const std::vector<Ceilings>& ceilings) {
  Section section{"Options of the Optimization Map", "map", {}, {}};
  Table table;
  table.columns = {{"Option", "option"},
                   {"Here", "here"},
                   {"In these runs", "setting"},
                   {"Measured saving (s)", "measured_seconds"},
                   {"At most (s)", "most_seconds"},
                   {"What it can give", "limit"}};
  const std::vector<const Run*> cases = Representatives(runs);
  std::vector<std::vector<MapPair>> pairs;
  for (const Run* run : cases) pairs.push_back(MapPairs(runs, run->name));
  bool measured = false;
  for (const Option& option : kOptions) {
    std::vector<std::string> states, savings;
    for (size_t i = 0; i < cases.size(); ++i) {
      states.push_back(option.in_run(cases[i]->report));
      savings.push_back(SavingOf(option, pairs[i], runs));
      measured = measured || !savings.back().empty();
    }
    table.rows.push_back({option.name, option.here, TextCell(Joined(cases, states)),
                          TextCell(Joined(cases, savings)),
                          TextCell(MostOf(option, cases, ceilings)), option.limit});
  }
  DropEmptyColumns(table);
  section.blocks.push_back(std::move(table));
  if (!measured) {
    section.blocks.push_back(
        Paragraph{"No two runs of a case differ in one of these options alone, so none is "
                  "measured. A request's options are measured by 'original' and 'options' of a "
                  "case, a server's by --compare NAME=HOST:PORT."});
  }
  return section;
}

}  // namespace wan::client::reports
