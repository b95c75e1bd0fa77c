// Makes a document of measured jobs: the only header that programs need besides run.h, ceilings.h
// and render.h.
#pragma once

#include <set>
#include <vector>

#include "client/reports/ceilings.h"
#include "client/reports/document.h"
#include "client/reports/run.h"

namespace wan::client::reports {

enum class ReportPart { kBenchmark, kPerformance, kBottlenecks, kOptions };

// An empty `parts` means all parts. Ceilings are used only for jobs of the same device.
Document BuildReport(const std::vector<Run>& runs, const std::vector<Ceilings>& ceilings,
                     const std::set<ReportPart>& parts = {});

// Makes the short report for a terminal: for several jobs one table of all, then the stages of each
// job.
Document BuildTables(const std::vector<Run>& runs);

}  // namespace wan::client::reports
