// Says why the time of a step changed, as far as the samples of the job say so.
#pragma once

#include <string>
#include <vector>

#include "client/reports/step_levels.h"
#include "wan/v1/telemetry.pb.h"

namespace wan::client::reports {

// The figures of one measured step from which causes are found; absent if not sampled.
struct StepChange {
  // The first step of the new level, counted from 0.
  int step = 0;
  // The last step of the new level.
  int last = 0;
  // Seconds of a step, before and after the change.
  double seconds_before = 0;
  double seconds_after = 0;
  // Full sentences. The first says what changed; each further one names a cause that the samples
  // show, or that they show none.
  std::vector<std::string> explanation;
  // Extra seconds of the new level's steps over the level before; negative if they were faster. 0
  // if the request is the reason (another expert, another number of forwards).
  double extra_seconds = 0;
  // Whether something on the machine has to change: clocks, another process. False if the job
  // itself is the reason.
  bool from_outside = true;
};

struct StepHistory {
  // Returns the changes in the order of steps. `numbers` has the steps' numbers in the job, which
  // do not begin at 0 in a resumed attempt.
  std::vector<double> seconds;
  std::vector<int> numbers;
  StepLevels levels;
  std::vector<StepChange> changes;
};

// The same for Step_N_Inference of the report.
StepHistory StepHistoryOf(const wan::v1::JobReport& report);

}  // namespace wan::client::reports
