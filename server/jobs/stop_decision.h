// Decides how long a running job may go on before the server stops.
#pragma once

#include <optional>
#include <string>

#include "absl/time/time.h"
#include "server/jobs/stop_mode.h"

namespace wan::server {

// Facts about a running job for this decision.
struct RunningOutlook {
  std::string job;
  // Median estimate of the time until its end; nullopt while unknown.
  std::optional<absl::Duration> left;
  // Time that the next process needs to load the job's model.
  absl::Duration loading;
  // Time of the work that the next attempt repeats: everything since the last step, and encoding
  // the texts and the image unless only decoding is left.
  absl::Duration computed_again;
  // False for a job that is tied to its caller: the restart cuts off the caller, so stopping ends
  // the job.
  bool resumable = true;

  absl::Duration RestartCost() const { return loading + computed_again; }
};

// Returns how long the job may go on before it is stopped: zero to `limit`. Pure.
//
// With kAuto a job may go on for the whole `limit` if it will probably end within the limit and
// within RestartCost(); otherwise it is stopped at once. If its remaining time is unknown, it may
// go on for RestartCost(), so waiting costs at most twice as much as the better choice. A job that
// cannot be resumed always has the whole limit.
absl::Duration TimeToFinish(StopMode mode, const RunningOutlook& job, absl::Duration limit);

}  // namespace wan::server
