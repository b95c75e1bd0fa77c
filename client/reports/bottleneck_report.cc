#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/reports/block_budget.h"
#include "client/reports/bottlenecks.h"
#include "client/reports/sections.h"

namespace wan::client::reports {
namespace {

using wan::v1::JobReport;

constexpr char kHowToMeasureCeilings[] =
    "The ceilings of this device are not known, so nothing is said of how far its work is from "
    "what it could give. 'wan_bench ceilings' measures them on the device and keeps them for the "
    "reports that are made there; --ceilings FILE takes the file of another machine.";

constexpr char kHowToReadCeilings[] =
    "'At least' is the time of the FLOPs at these rates, which the device was measured to give, "
    "sustained, in the precision of the work: nothing at this precision can be faster with these "
    "FLOPs. The FLOPs of the autoencoder are its convolutions as they are defined; kernels that "
    "put enlargement and convolution together compute fewer. The least time of a block leaves out "
    "its elementwise operators, which may overlap with products or find their data in a cache.";

// Returns the mean seconds that the steps spend in each of their parts, in the parts' order within
// a step.
std::vector<std::pair<std::string, double>> MeanParts(
    const std::vector<const StageReport*>& steps) {
  std::vector<std::pair<std::string, double>> parts;
  for (const StageReport* step : steps) {
    for (const wan::v1::StagePart& part : step->parts()) {
      auto found = std::find_if(parts.begin(), parts.end(),
                                [&](const auto& known) { return known.first == part.name(); });
      if (found == parts.end()) found = parts.insert(parts.end(), {part.name(), 0});
      found->second += part.seconds() / static_cast<double>(steps.size());
    }
  }
  return parts;
}

Cell Percent(double part, double whole) {
  if (whole <= 0) return {};
  return Number{part / whole * 100, 1};
}

Section StepBudget(const JobReport& report) {
  Section section{"Time Budget of a Step", "step_budget", {}, {}};
  const std::vector<const StageReport*> steps = FindStages(report, StageKind::kInference);
  if (steps.empty()) {
    section.blocks.push_back(Paragraph{"No step of this attempt has ended."});
    return section;
  }
  double inference = 0, loading = 0;
  for (const StageReport* step : steps)
    inference += step->seconds() / static_cast<double>(steps.size());
  for (const StageReport* load : FindStages(report, StageKind::kLoading)) {
    loading += load->seconds() / static_cast<double>(steps.size());
  }
  Table table;
  table.columns = {{"Part", "part"}, {"Mean (s)", "seconds"}, {"Share (%)", "share_percent"}};
  const double whole = inference + loading;
  const auto add = [&](const std::string& name, double seconds) {
    // Leave out parts that both columns would show as 0.
    if (seconds < 0.0005 && seconds < 0.0005 * whole) return;
    table.rows.push_back({name, Number{seconds, 3}, Percent(seconds, whole)});
  };
  add("loading", loading);
  double rest = inference;
  const std::vector<std::pair<std::string, double>> parts = MeanParts(steps);
  for (const auto& [name, seconds] : parts) {
    add(name, seconds);
    rest -= seconds;
  }
  add(parts.empty() ? "inference" : "between the parts", std::max(0.0, rest));
  table.rows.push_back({"step", Number{whole, 3}, Number{100, 1}});
  if (parts.empty()) table.note = "The parts of a step were not recorded.";
  section.blocks.push_back(std::move(table));
  return section;
}

// A table, column by column. NOLINTNEXTLINE(readability-function-size)
Section WorkAndCeilings(const JobReport& report, const Ceilings* ceilings) {
  Section section{"Work Against the Card's Ceilings", "ceilings", {}, {}};
  Table table;
  table.columns = {{"Work", "work"},
                   {"TFLOP", "tflop"},
                   {"Measured (s)", "seconds"},
                   {"TFLOP/s", "tflops"},
                   {"At least (s)", "floor_seconds"},
                   {"Measured / least", "ratio"}};
  const auto add = [&](const std::string& name, double flops, double seconds, double floor) {
    if (flops <= 0 || seconds <= 0) return;
    table.rows.push_back({name, Measure(flops / 1e12, 3), Number{seconds, 3},
                          Measure(flops / seconds / 1e12, 2), Positive(floor, 3),
                          floor > 0 ? Positive(seconds / floor, 2) : Cell()});
  };
  const Forward forward = MeanForward(report);
  // A floor of 0 means that it is unknown.
  const auto forward_floor = [&](double flops) {
    if (ceilings == nullptr) return 0.0;
    return ForwardFloor(*ceilings, report.plan(), report.dtype(), flops).value_or(0);
  };
  add("one forward", forward.flops, forward.seconds, forward_floor(forward.flops));
  double steps_flops = 0, steps_seconds = 0;
  for (const StageReport* step : FindStages(report, StageKind::kInference)) {
    const wan::v1::StagePlan* plan = PlanOf(report, step->stage());
    if (plan == nullptr) continue;
    steps_flops += plan->flops();
    steps_seconds += step->seconds();
  }
  add("all steps", steps_flops, steps_seconds, forward_floor(steps_flops));
  const std::pair<StageKind, const char*> kOthers[] = {{StageKind::kText, "T5_Encoding"},
                                                       {StageKind::kImage, "VAE_Encoding"},
                                                       {StageKind::kDecoding, "VAE_Decoding"}};
  for (const auto& [kind, name] : kOthers) {
    const StageReport* stage = FindStage(report, kind);
    const wan::v1::StagePlan* plan = PlanOf(report, name);
    if (stage == nullptr || plan == nullptr) continue;
    const std::string precision = kind == StageKind::kText ? report.dtype() : VaePrecision(report);
    add(name, plan->flops(), stage->seconds(),
        ceilings == nullptr ? 0 : ProductFloor(*ceilings, precision, plan->flops()).value_or(0));
  }
  if (table.rows.empty()) {
    section.blocks.push_back(Paragraph{"The plan of this job has no FLOPs."});
    return section;
  }
  DropEmptyColumns(table);
  section.blocks.push_back(std::move(table));
  if (ceilings == nullptr) return section;

  RooflineChart roofline;
  const auto peak = ceilings->products.find(BlockPrecision(report.plan(), report.dtype()));
  if (peak == ceilings->products.end() || ceilings->memory <= 0) return section;
  roofline.peak_flops_per_second = peak->second;
  roofline.bytes_per_second = ceilings->memory;
  double flops = 0, bytes = 0;
  for (const wan::v1::OperatorClass& one : report.plan().block_operators()) {
    flops += one.flops();
    bytes += one.bytes();
  }
  if (forward.seconds > 0 && bytes > 0) {
    roofline.works.push_back({"one forward", flops / bytes, forward.flops / forward.seconds});
  }
  AddClasses(report, roofline);
  if (!roofline.works.empty()) {
    section.blocks.push_back(Chart{"Roofline: work against this device's measured rates",
                                   "roofline", std::move(roofline)});
  }
  return section;
}

// Returns the rates of a device, which all of its cases share.
Facts RatesOf(const Ceilings& ceilings) {
  Facts facts;
  facts.facts.push_back(
      {"Measured", "measured_at", absl::StrCat(ceilings.device, ", ", ceilings.measured_at), ""});
  const auto add = [&facts](const std::string& work, const std::string& key,
                            const std::map<std::string, double>& rates) {
    for (const auto& [precision, rate] : rates) {
      facts.facts.push_back({absl::StrCat(work, ", ", precision), absl::StrCat(key, precision),
                             Measure(rate / 1e12, 2), "TFLOP/s"});
    }
  };
  add("Products", "products_", ceilings.products);
  add("Attention", "attention_", ceilings.attention);
  if (ceilings.memory > 0) {
    facts.facts.push_back(
        {"Device memory", "memory_bandwidth", Measure(ceilings.memory / 1e12, 3), "TB/s"});
  }
  return facts;
}

// Returns the rates of every device that the cases ran on, and an explanation of the figures that
// follow from them.
Section CeilingsSection(const std::vector<const Run*>& chosen, const std::vector<Ceilings>& known) {
  Section section{"Ceilings", "rates", {}, {}};
  std::set<const Ceilings*> shown;
  bool unknown = false;
  for (const Run* run : chosen) {
    const Ceilings* const ceilings = FindCeilings(known, run->report);
    unknown = unknown || ceilings == nullptr;
    if (ceilings == nullptr || !shown.insert(ceilings).second) continue;
    section.blocks.push_back(RatesOf(*ceilings));
  }
  if (!shown.empty()) section.blocks.push_back(Paragraph{kHowToReadCeilings});
  if (unknown) section.blocks.push_back(Paragraph{kHowToMeasureCeilings});
  return section;
}

// Adds the ranking, and the cause and the remedy of each of its lines.
void AddRanking(const Run& run, const Ceilings* ceilings, const std::vector<Run>& runs,
                Section& parent) {
  Section ranking{"Bottlenecks, Ranked by Seconds", "bottlenecks", {}, {}};
  const std::vector<Bottleneck> found = FindBottlenecks(run, ceilings, runs);
  if (found.empty()) {
    ranking.blocks.push_back(Paragraph{"Nothing costs half a percent of the job that need not."});
    parent.sections.push_back(std::move(ranking));
    return;
  }
  Table table;
  table.columns = {{"#", "rank"},
                   {"Location", "location"},
                   {"Takes (s)", "seconds"},
                   {"Would save (s)", "saves_seconds"},
                   {"Measured (s)", "measured_seconds"},
                   {"How it was found", "basis"}};
  List recommendations{{}, true};
  for (size_t i = 0; i < found.size(); ++i) {
    const Bottleneck& one = found[i];
    table.rows.push_back({Number{static_cast<double>(i + 1), 0}, one.location,
                          Number{one.seconds, 2}, CellOf(one.saves, 2),
                          one.measured ? CellOf(one.measured, 2) : TextCell(one.verdict),
                          one.basis});
    recommendations.items.push_back(absl::StrCat(one.cause, " ", one.remedy));
  }
  DropEmptyColumns(table);
  ranking.blocks.push_back(std::move(table));
  parent.sections.push_back(std::move(ranking));
  parent.sections.push_back(
      {"Recommendations", "recommendations", {std::move(recommendations)}, {}});
}

}  // namespace

Section BottleneckAnalysis(const std::vector<Run>& runs, const std::vector<Ceilings>& known) {
  Section section{"Performance Bottleneck Analysis", "bottleneck_analysis", {}, {}};
  const std::vector<const Run*> chosen = Representatives(runs);
  section.blocks.push_back(
      Paragraph{"Savings do not add up where two remedies touch the same seconds."});
  section.sections.push_back(CeilingsSection(chosen, known));
  for (const Run* run : chosen) {
    Section child{absl::StrCat(FullName(*run), " - where the time goes"), "case", {}, {}};
    const Ceilings* const ceilings = FindCeilings(known, run->report);
    AddRanking(*run, ceilings, runs, child);
    child.sections.push_back(StepBudget(run->report));
    child.sections.push_back(ForwardBudget(run->report, ceilings));
    child.sections.push_back(WorkAndCeilings(run->report, ceilings));
    section.sections.push_back(std::move(child));
  }
  return section;
}

}  // namespace wan::client::reports
