#include "client/reports/report.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "client/reports/sections.h"

namespace wan::client::reports {

std::vector<const Run*> Representatives(const std::vector<Run>& runs) {
  std::vector<std::string> names;
  for (const Run& run : runs) {
    if (std::find(names.begin(), names.end(), run.name) == names.end()) names.push_back(run.name);
  }
  std::vector<const Run*> chosen;
  for (const std::string& name : names) {
    std::vector<const Run*> same;
    const Run* any = nullptr;
    for (const Run& run : runs) {
      if (run.name != name) continue;
      if (any == nullptr) any = &run;
      if (run.variant.empty()) same.push_back(&run);
    }
    if (same.empty()) {
      chosen.push_back(any);
      continue;
    }
    std::stable_sort(same.begin(), same.end(), [](const Run* a, const Run* b) {
      return TotalSeconds(a->report) < TotalSeconds(b->report);
    });
    chosen.push_back(same[(same.size() - 1) / 2]);
  }
  return chosen;
}

Document BuildReport(const std::vector<Run>& runs, const std::optional<Ceilings>& ceilings,
                     const std::set<ReportPart>& parts) {
  const Ceilings* known = nullptr;
  if (ceilings && std::any_of(runs.begin(), runs.end(),
                              [&](const Run& run) { return AreOf(*ceilings, run.report); })) {
    known = &*ceilings;
  }
  Document document{"Wan2.2 reports", "reports", {}, {}};
  const auto wanted = [&parts](ReportPart part) { return parts.empty() || parts.contains(part); };
  if (ceilings && known == nullptr) {
    document.blocks.push_back(
        Paragraph{absl::StrCat("The ceilings were measured on ", ceilings->device,
                               ", which none of these jobs ran on; they are not used.")});
  }
  if (wanted(ReportPart::kBenchmark)) document.sections.push_back(BenchmarkReport(runs, known));
  if (wanted(ReportPart::kPerformance)) {
    document.sections.push_back(PerformanceAnalysis(runs, known));
  }
  if (wanted(ReportPart::kBottlenecks)) {
    document.sections.push_back(BottleneckAnalysis(runs, known));
  }
  if (wanted(ReportPart::kOptions)) document.sections.push_back(OptionsReport(runs, known));
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
