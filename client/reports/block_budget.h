// The part of the bottleneck analysis about a forward: the operators of a transformer block, as
// planned and, if the job profiled a block, as measured.
#pragma once

#include "client/reports/ceilings.h"
#include "client/reports/chart.h"
#include "client/reports/document.h"
#include "client/reports/run.h"

namespace wan::client::reports {

// The mean of all forwards of a job; zeros if none was recorded.
struct Forward {
  double seconds = 0;
  double flops = 0;
};
Forward MeanForward(const wan::v1::JobReport& report);

// Adds a table of a forward and its blocks by class of operators, with the least time that the
// ceilings (null: unknown) allow each class. The operators of a profile follow one by one.
Section ForwardBudget(const wan::v1::JobReport& report, const Ceilings* ceilings);

// Adds the classes of a profile that have FLOPs.
void AddClasses(const wan::v1::JobReport& report, RooflineChart& roofline);

}  // namespace wan::client::reports
