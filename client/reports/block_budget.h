// The bottleneck analysis of a forward pass: the operators of a transformer block as planned and,
// if the job has profiled a block, as measured.
#pragma once

#include "client/reports/ceilings.h"
#include "client/reports/chart.h"
#include "client/reports/document.h"
#include "client/reports/run.h"

namespace wan::client::reports {

// The mean forward pass of a job; its members are 0 if none was recorded.
struct Forward {
  double seconds = 0;
  double flops = 0;
};
Forward MeanForward(const wan::v1::JobReport& report);

// Returns tables of a forward pass and its blocks by class of operators, with the least time that
// the ceilings (null: unknown) allow for each class, and a table of the single operators of a
// profile.
Section ForwardBudget(const wan::v1::JobReport& report, const Ceilings* ceilings);

// Adds to the chart those operator classes of a profile that have FLOPs.
void AddClasses(const wan::v1::JobReport& report, RooflineChart& roofline);

}  // namespace wan::client::reports
