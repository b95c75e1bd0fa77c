// A job's progress as text: a pure function of its events.
#pragma once

#include <optional>
#include <string>

#include "wan/v1/generation.pb.h"

namespace wan::client {

// One line for an event, or nothing for events that say too little (a stage that starts, the stages
// of a step, previews) and for ends that are errors, which are told as errors.
std::optional<std::string> EventLine(const wan::v1::Event& event);

// True for events whose line stays on a terminal, above the bar.
bool StaysOnTerminal(const wan::v1::Event& event);

// The line that a terminal shows in place.
class ProgressBar {
 public:
  void Add(const wan::v1::Event& event);

  // For example "[======>         ] 4/10  1.25 s/step  0:09 left  Step_4_Inference", shorter than
  // `columns`. Seconds per step are the mean of the steps seen; what is not known is left out.
  std::string Render(int columns) const;

 private:
  // What a job does that does not run yet.
  std::string waiting_;
  std::string stage_;
  int step_ = 0;
  int total_ = 0;
  int steps_seen_ = 0;
  double seconds_seen_ = 0;
  std::optional<double> eta_seconds_;
};

}  // namespace wan::client
