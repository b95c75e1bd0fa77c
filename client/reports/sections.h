// The four reports, a pure function each. Rows and columns without figures are left out; a section
// without figures says what is missing and how to get it.
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
// Adds one line for each stage; steps whose loading took no time share one line.
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

// Returns one run of each case, in the order of the cases: the one with the median time among those
// without a variant; for a case with variants only, the first.
std::vector<const Run*> Representatives(const std::vector<Run>& runs);

// charts.cc
Chart TimelineOf(const wan::v1::JobReport& report);
Chart StepTimesOf(const wan::v1::JobReport& report);
// Chart of each component's peak memory, split into weights, activations and workspace. It has no
// bars if no peak is known.
Chart ComponentMemoryOf(const wan::v1::JobReport& report);

// GPU memory, in bytes, at the peak of a component's stage. The allocator measures the peak and the
// weights' part. The workspace of the matrix libraries is the plan's, because the allocator cannot
// distinguish it from tensors; activations are the rest.
struct ComponentMemory {
  std::string component;
  std::optional<double> peak;
  std::optional<double> weights;
  // Excludes the workspace if that is known.
  std::optional<double> activations;
  // At most the peak without the weights.
  std::optional<double> workspace;
  // The planned figures are upper bounds.
  std::optional<double> planned;
  std::optional<double> planned_weights;
  std::optional<double> planned_activations;
  std::string note;
};
std::vector<ComponentMemory> ComponentMemories(const wan::v1::JobReport& report);

}  // namespace wan::client::reports
