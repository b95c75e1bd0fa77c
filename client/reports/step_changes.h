// Explains changes of the step time from the job's samples.
#pragma once

#include <string>
#include <vector>

#include "client/reports/step_levels.h"
#include "wan/v1/telemetry.pb.h"

namespace wan::client::reports {

// A change of the step time, and its causes.
struct StepChange {
  // The first step of the new level, counted from 0.
  int step = 0;
  // The last step of the new level.
  int last = 0;
  // Seconds per step before and after the change.
  double seconds_before = 0;
  double seconds_after = 0;
  // Full sentences: the first says what changed, the others name causes found in the samples, or
  // say that there are none.
  std::vector<std::string> explanation;
  // Extra seconds of all steps of the new level compared with the previous one; negative if faster.
  // 0 if the request is the cause (another expert or number of forwards).
  double extra_seconds = 0;
  // Whether the machine is the cause (clocks, other processes) and not the job itself.
  bool from_outside = true;
};

struct StepHistory {
  // Seconds of each step, and its number in the job, which does not begin at 0 in a resumed
  // attempt.
  std::vector<double> seconds;
  std::vector<int> numbers;
  StepLevels levels;
  std::vector<StepChange> changes;
};

// Returns the history of the report's stages Step_N_Inference.
StepHistory StepHistoryOf(const wan::v1::JobReport& report);

}  // namespace wan::client::reports
