// Explains changes of the step time from the job's samples.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "client/reports/step_levels.h"
#include "wan/v1/telemetry.pb.h"

namespace wan::client::reports {

// A lasting change of the step time, and its causes.
struct StepChange {
  // The number of the first step of the new level, counted from 0.
  int step = 0;
  // The number of the last step of the new level.
  int last = 0;
  // Seconds of a step before and after the change.
  double seconds_before = 0;
  double seconds_after = 0;
  // Full sentences: the first one describes the change, the others name causes that were found in
  // the samples, or say that the samples show no cause.
  std::vector<std::string> explanation;
  // The extra seconds that all steps of the new level took, compared with steps of the previous
  // level; negative if the new steps are faster. The value is 0 if the request is the cause
  // (another expert or number of forwards).
  double extra_seconds = 0;
  // Whether the machine is the cause (clocks, other processes), and not the job itself.
  bool from_outside = true;
};

struct StepHistory {
  // The seconds of each step, and the step's number in the job, which does not begin at 0 in a
  // resumed attempt.
  std::vector<double> seconds;
  std::vector<int> numbers;
  // The numbers of steps that reused blocks: those with a part "reuse...", and of steps without
  // parts those that the plan names.
  std::set<int> reused;
  // The steps that computed their blocks, in levels; steps that reused blocks are exceptions.
  StepLevels levels;
  std::vector<StepChange> changes;

  // Returns the seconds of a step of the level that has the most steps; 0 without steps.
  double RegularSeconds() const;
};

// Returns the history of the report's stages Step_N_Inference.
StepHistory StepHistoryOf(const wan::v1::JobReport& report);

// Returns numbers of steps for people, each between `before` and `after`: "0 to 4, 6, 8", or "S0 to
// S4, S6, S8".
std::string StepsText(const std::set<int>& steps, const std::string& before = "",
                      const std::string& after = "");

}  // namespace wan::client::reports
