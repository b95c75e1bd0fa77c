// Pure functions that build the four reports. Rows and columns without figures are left out; a
// section without figures says which figures are missing and how to get them.
#pragma once

#include <string>
#include <vector>

#include "client/reports/ceilings.h"
#include "client/reports/document.h"
#include "client/reports/run.h"

namespace wan::client::reports {

// benchmark_report.cc defines this function: a line for each case and variant with its largest
// saving, then the stages, statistics, component memory and analysis of each case.
Section BenchmarkReport(const std::vector<Run>& runs, const std::vector<Ceilings>& ceilings);
// Returns a table with one line for each run.
Table SummaryTable(const std::vector<Run>& runs);
// Returns a table with one line for each stage; steps whose loading took no time share a line.
Table StageTable(const wan::v1::JobReport& report);

// device_shares.cc defines this function: one line for each device of the group that ran the job;
// no rows for a job of one device.
Table DeviceTable(const wan::v1::JobReport& report);
Section DeviceSharesOf(const wan::v1::JobReport& report);

// performance_report.cc defines this function: the machine, then for each case a summary, latency
// with shares, the sum of the memory and an execution trace.
Section PerformanceAnalysis(const std::vector<Run>& runs);

// execution_trace.cc defines this function: the steps and stages that the stage table of a job
// leaves out. Steps of one level share a line.
Section ExecutionTrace(const wan::v1::JobReport& report);

// bottleneck_report.cc defines this function: the ceilings, then for each case possible savings,
// the time budgets, and the work compared with ceilings.
Section BottleneckAnalysis(const std::vector<Run>& runs, const std::vector<Ceilings>& ceilings);

// options_report.cc defines this function: each option before and after, the map of options, and
// the hardware matrix.
Section OptionsReport(const std::vector<Run>& runs, const std::vector<Ceilings>& ceilings);

// options_map.cc defines this function: the options that affect the time of the cases.
Section OptionsMap(const std::vector<Run>& runs, const std::vector<Ceilings>& ceilings);

// Two runs of one case that differ in one option of the map alone, which is on in the second run.
struct MapPair {
  const char* option;
  const Run* before;
  const Run* after;
};
// Returns all pairs of a case's median runs, in the order of the map.
std::vector<MapPair> MapPairs(const std::vector<Run>& runs, const std::string& name);

// Returns one run of each case, in the order of the cases: the run with the median time among those
// without a variant, or the first run if all have variants.
std::vector<const Run*> Representatives(const std::vector<Run>& runs);

// charts.cc defines these two functions.
Chart TimelineOf(const wan::v1::JobReport& report);
Chart StepTimesOf(const wan::v1::JobReport& report);

// memory.cc defines this function and those below. Returns the chart of each component's peak
// memory, split into weights, activations and workspace; the chart has no bars if no peak is known.
Chart ComponentMemoryOf(const wan::v1::JobReport& report);
Section MemoryProfile(const wan::v1::JobReport& report);
// Returns the parts that fill the device at the job's peak; they add up to its memory.
Section MemoryTelemetry(const wan::v1::JobReport& report);

// GPU memory, in bytes, at the peak of a component's stage. The allocator has measured peak and
// weights. The workspace of the matrix libraries comes from the plan, because the allocator cannot
// tell it from tensors. The remainder of the peak is activations.
struct ComponentMemory {
  std::string component;
  std::optional<double> peak;
  std::optional<double> weights;
  // The activations do not contain the workspace if the workspace is known.
  std::optional<double> activations;
  // The workspace is at most the peak without the weights.
  std::optional<double> workspace;
  // The plan's upper bound of the activations.
  std::optional<double> planned_activations;
  // The sizes, precisions and places of the component's weights.
  std::string note;
};
std::vector<ComponentMemory> ComponentMemories(const wan::v1::JobReport& report);

}  // namespace wan::client::reports
