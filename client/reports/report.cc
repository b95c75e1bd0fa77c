#include "client/reports/report.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "client/reports/comparison.h"
#include "client/reports/sections.h"

namespace wan::client::reports {

std::vector<const Run*> Representatives(const std::vector<Run>& runs) {
  std::vector<const Run*> chosen;
  std::set<std::string> names;
  for (const Run& run : runs) {
    if (!names.insert(run.name).second) continue;
    const std::vector<const Run*> variants = MedianRuns(runs, run.name);
    const auto own = std::find_if(variants.begin(), variants.end(),
                                  [](const Run* variant) { return variant->variant.empty(); });
    chosen.push_back(own == variants.end() ? &run : *own);
  }
  return chosen;
}

namespace {

// Returns the names of the devices on which the runs were made, with their memory.
std::string DevicesOf(const std::vector<Run>& runs) {
  std::vector<std::string> devices;
  for (const Run& run : runs) {
    const wan::v1::SystemDescription& system = run.report.system();
    std::string device = DeviceNameOf(run.report);
    if (device.empty()) continue;
    const bool on_gpu = !system.gpu().name().empty();
    const uint64_t memory =
        on_gpu ? system.gpu().memory_total_bytes() : system.memory_total_bytes();
    if (!on_gpu) absl::StrAppend(&device, ", ", system.cpu_cores(), " logical processors");
    if (memory > 0) {
      absl::StrAppendFormat(&device, ", %.1f GiB", static_cast<double>(memory) / kGibibyte);
    }
    if (std::find(devices.begin(), devices.end(), device) == devices.end()) {
      devices.push_back(std::move(device));
    }
  }
  return absl::StrJoin(devices, "; ");
}

// Returns the first and the last day of the runs, in UTC; empty if unknown.
std::string DaysOf(const std::vector<Run>& runs) {
  std::set<std::string> days;
  for (const Run& run : runs) {
    const StageReport* total = FindStage(run.report, StageKind::kTotal);
    if (total == nullptr || !total->has_start_time()) continue;
    days.insert(absl::FormatTime("%Y-%m-%d", absl::FromUnixSeconds(total->start_time().seconds()),
                                 absl::UTCTimeZone()));
  }
  if (days.size() < 2) return days.empty() ? "" : *days.begin();
  return absl::StrCat(*days.begin(), " to ", *days.rbegin());
}

// Returns the model of all runs; empty if there are several models, which the table of the cases
// names.
std::string ModelOf(const std::vector<Run>& runs) {
  for (const Run& run : runs) {
    if (run.report.model() != runs.front().report.model()) return "";
  }
  return runs.empty() ? "" : runs.front().report.model();
}

// Returns the summary at the head of the document, before the table of the benchmark.
Facts Head(const std::vector<Run>& runs) {
  const size_t cases = Representatives(runs).size();
  Facts head;
  head.facts = {{"Device", "devices", TextCell(DevicesOf(runs)), ""},
                {"Model", "model", TextCell(ModelOf(runs)), ""},
                {"Date", "dates", TextCell(DaysOf(runs)), ""},
                {"Runs", "runs", Number{static_cast<double>(runs.size()), 0},
                 cases > 1 ? absl::StrCat("of ", cases, " cases") : ""}};
  std::erase_if(head.facts, [](const Fact& fact) {
    return std::holds_alternative<std::monostate>(fact.value);
  });
  return head;
}

}  // namespace

Document BuildReport(const std::vector<Run>& runs, const std::vector<Ceilings>& ceilings,
                     const std::set<ReportPart>& parts) {
  Document document{"Wan2.2 reports", "reports", {}, {}};
  const auto wanted = [&parts](ReportPart part) { return parts.empty() || parts.contains(part); };
  if (wanted(ReportPart::kBenchmark)) document.blocks.emplace_back(Head(runs));
  for (const Ceilings& one : ceilings) {
    if (std::any_of(runs.begin(), runs.end(),
                    [&](const Run& run) { return AreOf(one, run.report); })) {
      continue;
    }
    document.blocks.push_back(
        Paragraph{absl::StrCat("The ceilings were measured on ", one.device,
                               ", which none of these jobs ran on; they are not used.")});
  }
  if (wanted(ReportPart::kBenchmark)) document.sections.push_back(BenchmarkReport(runs, ceilings));
  if (wanted(ReportPart::kPerformance)) {
    document.sections.push_back(PerformanceAnalysis(runs));
  }
  if (wanted(ReportPart::kBottlenecks)) {
    document.sections.push_back(BottleneckAnalysis(runs, ceilings));
  }
  if (wanted(ReportPart::kOptions)) document.sections.push_back(OptionsReport(runs, ceilings));
  return document;
}

Document BuildTables(const std::vector<Run>& runs) {
  const auto tables = [](const Run& run) {
    std::vector<Block> blocks = {StageTable(run.report)};
    if (!run.report.devices().empty()) blocks.emplace_back(DeviceTable(run.report));
    return blocks;
  };
  if (runs.size() == 1) return {"", "tables", tables(runs.front()), {}};
  Document document{"", "tables", {SummaryTable(runs)}, {}};
  for (const Run& run : runs) {
    document.sections.push_back({FullName(run), "stages", tables(run), {}});
  }
  return document;
}

}  // namespace wan::client::reports
