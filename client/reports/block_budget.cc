#include "client/reports/block_budget.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace wan::client::reports {
namespace {

using wan::v1::JobReport;
using wan::v1::OperatorClass;

// Returns the latest step that profiled a block; null if none did.
const StageReport* ProfiledStep(const JobReport& report) {
  const StageReport* profiled = nullptr;
  for (const StageReport* step : FindStages(report, StageKind::kInference)) {
    if (step->block_profile().operators_size() > 0) profiled = step;
  }
  return profiled;
}

// A class of operators in a profile; its seconds, FLOPs and bytes are totals over all texts of the
// forward pass.
struct MeasuredClass {
  OperatorClass work;
  double seconds = 0;
};

// Returns the classes, in the order in which a block first runs them.
std::vector<MeasuredClass> ClassesOf(const wan::v1::BlockProfile& profile) {
  std::vector<MeasuredClass> classes;
  for (const wan::v1::BlockOperator& one : profile.operators()) {
    auto found = std::find_if(classes.begin(), classes.end(), [&](const MeasuredClass& known) {
      return known.work.name() == one.operator_class();
    });
    if (found == classes.end()) {
      found = classes.emplace(classes.end());
      found->work.set_name(one.operator_class());
    }
    found->seconds += one.seconds();
    if (one.has_flops()) found->work.set_flops(found->work.flops() + one.flops());
    if (one.has_bytes()) found->work.set_bytes(found->work.bytes() + one.bytes());
  }
  return classes;
}

// Waits for weights that took a smaller share of a block's time have no line.
constexpr double kLeastWait = 0.001;

double FloorOf(const Ceilings* ceilings, const OperatorClass& work, const JobReport& report) {
  if (ceilings == nullptr) return 0;
  return FloorSeconds(*ceilings, work, report.plan(), report.dtype()).value_or(0);
}

// Returns where the block was measured: "Step_1_Inference, forward, block 14 of 30".
std::string PlaceOf(const JobReport& report, const StageReport& step) {
  const wan::v1::BlockProfile& profile = step.block_profile();
  std::string place = absl::StrCat(step.stage(), ", ", profile.part(), ", block ", profile.block());
  if (report.plan().blocks() > 0) {
    absl::StrAppend(&place, " of 0 to ", report.plan().blocks() - 1);
  }
  return place;
}

// Returns the table of a block's classes, as planned and as measured, for a forward pass with one
// text. A table, column by column. NOLINTNEXTLINE(readability-function-size)
Table ClassTable(const JobReport& report, const Ceilings* ceilings) {
  const wan::v1::PlanReport& plan = report.plan();
  const Forward forward = MeanForward(report);
  const StageReport* const step = ProfiledStep(report);
  std::vector<MeasuredClass> measured;
  double texts_measured = 1;
  if (step != nullptr) {
    measured = ClassesOf(step->block_profile());
    texts_measured = std::max(1, step->block_profile().texts());
  }
  Table table;
  table.columns = {{"Operators of a block", "operators"}, {"GFLOP", "gflop"},
                   {"MB moved at least", "megabytes"},    {"Measured (ms)", "milliseconds"},
                   {"Share of time (%)", "time_percent"}, {"At least (ms)", "floor_milliseconds"},
                   {"Measured / least", "ratio"}};
  const int blocks = std::max(1, plan.blocks());
  double flops = 0, bytes = 0, floors = 0;
  for (const OperatorClass& one : plan.block_operators()) {
    flops += one.flops();
    bytes += one.bytes();
  }
  const double block_seconds = step == nullptr ? 0 : step->block_profile().seconds();
  const auto share = [&](double seconds) {
    return block_seconds > 0 ? Positive(seconds / block_seconds * 100, 1) : Cell();
  };
  bool all_floors = ceilings != nullptr;
  for (const OperatorClass& one : plan.block_operators()) {
    const double floor = FloorOf(ceilings, one, report);
    const auto found = std::find_if(
        measured.begin(), measured.end(),
        [&](const MeasuredClass& candidate) { return candidate.work.name() == one.name(); });
    const double seconds = found == measured.end() ? 0 : found->seconds;
    table.rows.push_back(
        {one.name(), PositiveMeasure(one.flops(), 2, 1e-9), PositiveMeasure(one.bytes(), 1, 1e-6),
         Positive(seconds / texts_measured, 3, 1e3), share(seconds), Positive(floor, 3, 1e3),
         floor > 0 ? Positive(seconds / texts_measured / floor, 2) : Cell()});
    // As in ForwardFloor, elementwise operators have no floor, because they may overlap with
    // products or find their data in a cache.
    if (one.name() == "elementwise") continue;
    floors += floor;
    all_floors = all_floors && floor > 0;
  }
  for (const MeasuredClass& one : measured) {
    // Leave out waits that are so short that measuring itself may have caused them.
    if (one.work.name() != "weights" || one.seconds < kLeastWait * block_seconds) continue;
    table.rows.push_back({"waiting for streamed weights", Cell(), Cell(),
                          Positive(one.seconds / texts_measured, 3, 1e3), share(one.seconds),
                          Cell(), Cell()});
  }
  // A forward pass may have several texts, while the plan's block has one.
  const double texts = flops > 0 && forward.flops > 0
                           ? std::max(1.0, std::round(forward.flops / (flops * blocks)))
                           : 1;
  const double whole =
      step == nullptr ? forward.seconds / blocks / texts : block_seconds / texts_measured;
  table.rows.push_back({"one block", PositiveMeasure(flops, 2, 1e-9),
                        PositiveMeasure(bytes, 1, 1e-6), Positive(whole, 3, 1e3),
                        share(block_seconds), all_floors ? Positive(floors, 3, 1e3) : Cell(),
                        all_floors ? Positive(whole / floors, 2) : Cell()});
  table.note = absl::StrFormat("One text in one of the %d blocks of a forward", plan.blocks());
  if (plan.tokens() > 0) absl::StrAppendFormat(&table.note, ", %d tokens", plan.tokens());
  if (step != nullptr) {
    absl::StrAppend(&table.note, ", measured in ", PlaceOf(report, *step),
                    texts_measured > 1 ? ", and divided by its two texts." : ".");
    if (plan.record_forwards()) {
      absl::StrAppend(
          &table.note,
          " The measured forward was computed operator by operator, and not replayed as "
          "a recorded one is.");
    }
  } else {
    absl::StrAppend(&table.note,
                    ". Its time is the forward's, divided by blocks and texts; a job with "
                    "'profile: true' ('wanctl generate --profile') measures each class.");
  }
  DropEmptyColumns(table);
  return table;
}

// Returns the table of the measured block's operators, in the order in which they ran.
Table OperatorTable(const JobReport& report, const StageReport& step, const Ceilings* ceilings) {
  const wan::v1::BlockProfile& profile = step.block_profile();
  Table table;
  table.columns = {{"Operator", "operator"},          {"Class", "class"},
                   {"Measured (ms)", "milliseconds"}, {"TFLOP/s", "tflops"},
                   {"GB/s", "gigabytes_per_second"},  {"Measured / least", "ratio"}};
  for (const wan::v1::BlockOperator& one : profile.operators()) {
    OperatorClass work;
    work.set_name(one.operator_class());
    work.set_flops(one.flops());
    work.set_bytes(one.bytes());
    const double floor = FloorOf(ceilings, work, report);
    const double seconds = one.seconds();
    // Leave out waits that are so short that measuring itself may have caused them.
    if (one.operator_class() == "weights" && seconds < kLeastWait * profile.seconds()) continue;
    const auto rate = [&](double amount, double scale) {
      return seconds > 0 ? PositiveMeasure(amount / seconds, 2, scale) : Cell();
    };
    table.rows.push_back({one.name(), one.operator_class(), Positive(seconds, 3, 1e3),
                          rate(one.flops(), 1e-12), rate(one.bytes(), 1e-9),
                          floor > 0 ? Positive(seconds / floor, 2) : Cell()});
  }
  if (profile.texts() > 1) {
    table.note = "The operators of the same block, for both texts together.";
  }
  DropEmptyColumns(table);
  return table;
}

}  // namespace

Forward MeanForward(const JobReport& report) {
  Forward mean;
  int count = 0;
  for (const StageReport* step : FindStages(report, StageKind::kInference)) {
    for (const wan::v1::StagePart& part : step->parts()) {
      if (!absl::StartsWith(part.name(), "forward")) continue;
      mean.seconds += part.seconds();
      mean.flops += part.flops();
      ++count;
    }
  }
  if (count > 0) {
    mean.seconds /= count;
    mean.flops /= count;
  }
  return mean;
}

Section ForwardBudget(const JobReport& report, const Ceilings* ceilings) {
  Section section{"Time Budget of a Forward and of a Block", "forward_budget", {}, {}};
  if (report.plan().block_operators().empty()) {
    section.blocks.push_back(Paragraph{"The plan of this job has no operators of a block."});
    return section;
  }
  section.blocks.push_back(ClassTable(report, ceilings));
  if (const StageReport* const step = ProfiledStep(report)) {
    section.blocks.push_back(OperatorTable(report, *step, ceilings));
  }
  return section;
}

void AddClasses(const JobReport& report, RooflineChart& roofline) {
  const StageReport* const step = ProfiledStep(report);
  if (step == nullptr) return;
  for (const MeasuredClass& one : ClassesOf(step->block_profile())) {
    if (one.work.flops() <= 0 || one.work.bytes() <= 0 || one.seconds <= 0) continue;
    roofline.works.push_back(
        {one.work.name(), one.work.flops() / one.work.bytes(), one.work.flops() / one.seconds});
  }
}

}  // namespace wan::client::reports
