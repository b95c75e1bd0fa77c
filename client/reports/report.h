// Makes documents about measured jobs. Programs that use the reports need only this header, run.h,
// ceilings.h and render.h.
#pragma once

#include <set>
#include <vector>

#include "client/reports/ceilings.h"
#include "client/reports/document.h"
#include "client/reports/run.h"

namespace wan::client::reports {

enum class ReportPart { kBenchmark, kPerformance, kBottlenecks, kOptions };

// If `parts` is empty, the document has all parts. Ceilings are used only for jobs of the same
// device.
Document BuildReport(const std::vector<Run>& runs, const std::vector<Ceilings>& ceilings,
                     const std::set<ReportPart>& parts = {});

// Makes the short report for a terminal: a table of all jobs if there are several, then the stages
// of each job.
Document BuildTables(const std::vector<Run>& runs);

}  // namespace wan::client::reports
