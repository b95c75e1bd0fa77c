// Says why the time of a step changed, as far as the samples of the job say so.
#pragma once

#include <string>
#include <vector>

#include "client/reports/step_levels.h"
#include "wan/v1/telemetry.pb.h"

namespace wan::client::reports {

// What a cause needs to be seen: one step as it was measured. An absent figure stays absent.
struct StepChange {
  // The first step of the new level, counted from 0.
  int step = 0;
  // The last step of the new level.
  int last = 0;
  // Of a step, before and after.
  double seconds_before = 0;
  double seconds_after = 0;
  // Full sentences. The first says what changed; each further one names a cause that the samples
  // show, or that they show none.
  std::vector<std::string> explanation;
  // What the steps of the new level took more than they would have at the level before; negative if
  // they took less. 0 if the request is the reason (another expert, another number of forwards).
  double extra_seconds = 0;
  // Whether something on the machine has to change: clocks, another process. False if the job
  // itself is the reason.
  bool from_outside = true;
};

struct StepHistory {
  // In the order of steps; `numbers` has the steps' numbers in the job, which do not begin at 0 in
  // a resumed attempt.
  std::vector<double> seconds;
  std::vector<int> numbers;
  StepLevels levels;
  std::vector<StepChange> changes;
};

// Looks at Step_N_Inference of the report. Pure.
StepHistory StepHistoryOf(const wan::v1::JobReport& report);

}  // namespace wan::client::reports
