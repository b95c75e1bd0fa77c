#include "client/reports/report.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
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

Document BuildReport(const std::vector<Run>& runs, const std::vector<Ceilings>& ceilings,
                     const std::set<ReportPart>& parts) {
  Document document{"Wan2.2 reports", "reports", {}, {}};
  const auto wanted = [&parts](ReportPart part) { return parts.empty() || parts.contains(part); };
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
    document.sections.push_back(PerformanceAnalysis(runs, ceilings));
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
