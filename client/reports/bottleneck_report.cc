#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/reports/block_budget.h"
#include "client/reports/bottlenecks.h"
#include "client/reports/sections.h"

namespace wan::client::reports {
namespace {

using wan::v1::JobReport;

constexpr char kHowToMeasureCeilings[] =
    "The ceilings of this device are not known, so nothing is said of how far its work is from "
    "what it could give. "
    "'wan_bench ceilings' measures them on the device and keeps them for the reports that are made "
    "there; --ceilings FILE takes the file of another machine.";

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
  table.rows.push_back({"loading", Number{loading, 3}, Percent(loading, whole)});
  double rest = inference;
  for (const auto& [name, seconds] : MeanParts(steps)) {
    table.rows.push_back({name, Number{seconds, 3}, Percent(seconds, whole)});
    rest -= seconds;
  }
  if (table.rows.size() == 1) {
    table.rows.push_back({"inference", Number{inference, 3}, Percent(inference, whole)});
    table.note = "The parts of a step were not recorded.";
  } else {
    table.rows.push_back(
        {"between the parts", Number{std::max(0.0, rest), 3}, Percent(std::max(0.0, rest), whole)});
  }
  table.rows.push_back({"step", Number{whole, 3}, Number{100, 1}});
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
  bool has_vae = false;
  for (const auto& [kind, name] : kOthers) {
    const StageReport* stage = FindStage(report, kind);
    const wan::v1::StagePlan* plan = PlanOf(report, name);
    if (stage == nullptr || plan == nullptr) continue;
    const std::string precision = kind == StageKind::kText ? report.dtype() : VaePrecision(report);
    has_vae = has_vae || (kind != StageKind::kText && plan->flops() > 0);
    add(name, plan->flops(), stage->seconds(),
        ceilings == nullptr ? 0 : ProductFloor(*ceilings, precision, plan->flops()).value_or(0));
  }
  if (table.rows.empty()) {
    section.blocks.push_back(Paragraph{"The plan of this job has no FLOPs."});
  } else {
    table.note =
        "At least: FLOPs at the rates that this device was measured to give, sustained, in the "
        "precision of the work. "
        "Nothing at this precision can be faster with these FLOPs.";
    if (has_vae) {
      absl::StrAppend(&table.note,
                      " Those of the autoencoder are its convolutions as they are defined; kernels "
                      "that put enlargement and convolution together compute fewer.");
    }
    if (ceilings == nullptr) table.note.clear();
    DropEmptyColumns(table);
    section.blocks.push_back(std::move(table));
  }
  if (ceilings == nullptr) {
    section.blocks.push_back(Paragraph{kHowToMeasureCeilings});
    return section;
  }
  Facts facts;
  for (const auto& [precision, rate] : ceilings->products) {
    facts.facts.push_back({absl::StrCat("Products, ", precision),
                           absl::StrCat("products_", precision), Measure(rate / 1e12, 2),
                           "TFLOP/s"});
  }
  for (const auto& [precision, rate] : ceilings->attention) {
    facts.facts.push_back({absl::StrCat("Attention, ", precision),
                           absl::StrCat("attention_", precision), Measure(rate / 1e12, 2),
                           "TFLOP/s"});
  }
  if (ceilings->memory > 0) {
    facts.facts.push_back(
        {"Device memory", "memory_bandwidth", Measure(ceilings->memory / 1e12, 3), "TB/s"});
  }
  facts.facts.push_back(
      {"Measured", "measured_at", absl::StrCat(ceilings->device, ", ", ceilings->measured_at), ""});
  section.blocks.push_back(std::move(facts));

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

Section Ranking(const Run& run, const Ceilings* ceilings, const std::vector<Run>& runs) {
  Section section{"Bottlenecks, Ranked by Seconds", "bottlenecks", {}, {}};
  const std::vector<Bottleneck> found = FindBottlenecks(run, ceilings, runs);
  if (found.empty()) {
    section.blocks.push_back(Paragraph{"Nothing costs half a percent of the job that need not."});
    return section;
  }
  Table table;
  table.columns = {{"#", "rank"},
                   {"Location", "location"},
                   {"Takes (s)", "seconds"},
                   {"Cause", "cause"},
                   {"What to set", "remedy"},
                   {"Would save (s)", "saves_seconds"},
                   {"Measured (s)", "measured_seconds"},
                   {"How it was found", "basis"}};
  for (size_t i = 0; i < found.size(); ++i) {
    const Bottleneck& one = found[i];
    table.rows.push_back({Number{static_cast<double>(i + 1), 0}, one.location,
                          Number{one.seconds, 2}, one.cause, one.remedy, CellOf(one.saves, 2),
                          one.measured ? CellOf(one.measured, 2) : TextCell(one.verdict),
                          one.basis});
  }
  DropEmptyColumns(table);
  table.note = absl::StrFormat(
      "Of %.2f s of Total_Execution. The savings do not add up where two remedies touch the same "
      "seconds.",
      TotalSeconds(run.report));
  section.blocks.push_back(std::move(table));
  return section;
}

Section WhyBusyIsNotFast(const JobReport& report) {
  Section section{"What Full SM Activity Says", "sm_activity", {}, {}};
  const std::vector<const StageReport*> steps = FindStages(report, StageKind::kInference);
  const std::optional<double> active = WeightedMean(steps, SmActivity);
  const std::optional<double> tensor = WeightedMean(steps, [](const StageReport& stage) {
    return stage.has_tensor_activity_percent()
               ? std::optional<double>(stage.tensor_activity_percent())
               : std::nullopt;
  });
  const std::optional<double> dram = WeightedMean(steps, [](const StageReport& stage) {
    return stage.has_dram_bandwidth_percent()
               ? std::optional<double>(stage.dram_bandwidth_percent())
               : std::nullopt;
  });
  if (!active) {
    section.blocks.push_back(Paragraph{"SM activity was not measured on this device."});
    return section;
  }
  std::string text = absl::StrFormat(
      "During the steps some warp was resident on an SM in %.1f %% of the time; that alone does "
      "not say that the work is "
      "efficient.",
      *active);
  if (tensor) absl::StrAppendFormat(&text, " The tensor cores computed in %.1f %% of it.", *tensor);
  if (dram) absl::StrAppendFormat(&text, " %.1f %% of the memory's bandwidth was used.", *dram);
  section.blocks.push_back(Paragraph{std::move(text)});
  return section;
}

}  // namespace

Section BottleneckAnalysis(const std::vector<Run>& runs, const std::vector<Ceilings>& known) {
  Section section{"Performance Bottleneck Analysis", "bottleneck_analysis", {}, {}};
  for (const Run* run : Representatives(runs)) {
    Section child{absl::StrCat(FullName(*run), " - where the time goes"), "case", {}, {}};
    const Ceilings* const ceilings = FindCeilings(known, run->report);
    child.sections.push_back(Ranking(*run, ceilings, runs));
    child.sections.push_back(StepBudget(run->report));
    child.sections.push_back(ForwardBudget(run->report, ceilings));
    child.sections.push_back(WorkAndCeilings(run->report, ceilings));
    child.sections.push_back(WhyBusyIsNotFast(run->report));
    section.sections.push_back(std::move(child));
  }
  return section;
}

}  // namespace wan::client::reports
