// The four reports, a function each. They are pure: the same runs give the same tree. A row or a
// column that nothing was measured for is left out; a section whose figures are missing says what
// is missing and how to get it.
#pragma once

#include <string>
#include <vector>

#include "client/reports/ceilings.h"
#include "client/reports/document.h"
#include "client/reports/run.h"

namespace wan::client::reports {

// benchmark_report.cc: summary of all runs, then each case's stages, statistics, component memory
// and analysis.
Section BenchmarkReport(const std::vector<Run>& runs, const std::vector<Ceilings>& ceilings);
// One line for each run.
Table SummaryTable(const std::vector<Run>& runs);
// One line for each stage; steps whose loading took no time are one line.
Table StageTable(const wan::v1::JobReport& report);

// device_shares.cc: one line for each device of the group that ran the job; no rows for a job of
// one device.
Table DeviceTable(const wan::v1::JobReport& report);
Section DeviceSharesOf(const wan::v1::JobReport& report);

// performance_report.cc: context, summary, latency with shares, memory, recommendations, execution
// trace, for each case.
Section PerformanceAnalysis(const std::vector<Run>& runs, const std::vector<Ceilings>& ceilings);

// bottleneck_report.cc: time budgets, work against ceilings, and what would save how many seconds,
// for each case.
Section BottleneckAnalysis(const std::vector<Run>& runs, const std::vector<Ceilings>& ceilings);

// options_report.cc: each option before and after, and the hardware matrix.
Section OptionsReport(const std::vector<Run>& runs, const std::vector<Ceilings>& ceilings);

// options_map.cc: the options of a case that are known to cost or save time, and every pair of its
// runs that differs in one of them alone.
Section OptionsMap(const Run& run, const std::vector<Run>& runs,
                   const std::vector<Ceilings>& ceilings);

// One run of each case, in the order of the cases: of those without a variant the one whose time is
// the median; of a case that has only variants, the first.
std::vector<const Run*> Representatives(const std::vector<Run>& runs);

// charts.cc
Chart TimelineOf(const wan::v1::JobReport& report);
Chart StepTimesOf(const wan::v1::JobReport& report);
// Peak memory of each component, split into weights, activations and workspace. Without bars where
// no peak is known.
Chart ComponentMemoryOf(const wan::v1::JobReport& report);

// What a component's stage held of the GPU's memory. The allocator measures the peak and what
// weights hold of it. The workspace of the matrix libraries is the plan's, since no allocator tells
// it from tensors; activations are the rest of the peak. All in bytes.
struct ComponentMemory {
  std::string component;
  std::optional<double> peak;
  std::optional<double> weights;
  // Without the workspace where that is known.
  std::optional<double> activations;
  // At most what the peak has beside the weights.
  std::optional<double> workspace;
  // Upper bounds.
  std::optional<double> planned;
  std::optional<double> planned_weights;
  std::optional<double> planned_activations;
  std::string note;
};
std::vector<ComponentMemory> ComponentMemories(const wan::v1::JobReport& report);

}  // namespace wan::client::reports
