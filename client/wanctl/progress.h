// Describes the progress of a job as text, from the job's events.
#pragma once

#include <optional>
#include <string>

#include "wan/v1/generation.pb.h"

namespace wan::client {

// Returns a line for an event; nullopt for minor events (the start of a stage, stages of a step,
// previews), and for failures and cancellations, which the caller prints as errors.
std::optional<std::string> EventLine(const wan::v1::Event& event);

// Whether the event's line stays on the terminal, above the bar.
bool StaysOnTerminal(const wan::v1::Event& event);

// The line that is redrawn in place at the bottom of a terminal.
class ProgressBar {
 public:
  // Updates the bar with the job's next event.
  void Add(const wan::v1::Event& event);

  // Returns, for example, "[======> ] 4/10 1.25 s/step 0:09 left Step_4_Inference"; it is shorter
  // than `columns`, and unknown values are left out. The seconds per step are the mean of the steps
  // seen so far.
  std::string Render(int columns) const;

 private:
  // The text that is shown until the first stage starts.
  std::string waiting_;
  std::string stage_;
  int step_ = 0;
  int total_ = 0;
  int steps_seen_ = 0;
  double seconds_seen_ = 0;
  std::optional<double> eta_seconds_;
};

}  // namespace wan::client
