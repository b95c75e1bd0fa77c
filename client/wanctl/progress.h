// Describes a job's progress as text, from its events.
#pragma once

#include <optional>
#include <string>

#include "wan/v1/generation.pb.h"

namespace wan::client {

// Returns a line for an event; nullopt for minor events (start of a stage, stages of a step,
// previews), and for failures and cancellations, which are printed as errors.
std::optional<std::string> EventLine(const wan::v1::Event& event);

// Whether an event's line stays on the terminal, above the bar.
bool StaysOnTerminal(const wan::v1::Event& event);

// The line that is redrawn in place on a terminal.
class ProgressBar {
 public:
  // Updates the bar with the job's next event.
  void Add(const wan::v1::Event& event);

  // Returns, for example, "[======> ] 4/10 1.25 s/step 0:09 left Step_4_Inference", shorter than
  // `columns` and without unknown values. Seconds per step are the mean of the steps seen.
  std::string Render(int columns) const;

 private:
  // Shown until the first stage starts.
  std::string waiting_;
  std::string stage_;
  int step_ = 0;
  int total_ = 0;
  int steps_seen_ = 0;
  double seconds_seen_ = 0;
  std::optional<double> eta_seconds_;
};

}  // namespace wan::client
