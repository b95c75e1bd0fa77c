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
  // The time until its end, as half of all jobs keep it; nothing while that is unknown.
  std::optional<absl::Duration> left;
  // Time in which the next process loads the job's model.
  absl::Duration loading;
  // The work that the next attempt does again: what was computed since the last step, and the texts
  // and the image, which are encoded again unless only decoding is left.
  absl::Duration computed_again;
  // False for a job that is tied to its caller, who is gone after the restart: a stop is its end.
  bool resumable = true;

  absl::Duration RestartCost() const { return loading + computed_again; }
};

// Returns how long the job may go on before it is stopped: zero to `limit`. Pure.
//
// With kAuto a job goes on if it probably ends within the limit, and sooner than a restart would
// bring it back to where it is. While its time is unknown, it may go on for as long as the restart
// would take, so the cost is at most twice that of the better choice. A job that cannot be resumed
// has the whole limit.
absl::Duration TimeToFinish(StopMode mode, const RunningOutlook& job, absl::Duration limit);

}  // namespace wan::server
