// Decides how long a running job may go on before the server stops.
#pragma once

#include <optional>
#include <string>

#include "absl/time/time.h"
#include "server/jobs/stop_mode.h"

namespace wan::server {

// The facts about a running job on which the decision depends.
struct RunningOutlook {
  std::string job;
  // Median estimate of the time until the job's end; nullopt while unknown.
  std::optional<absl::Duration> left;
  // Time that the next process needs to load the job's model.
  absl::Duration loading;
  // Time that the next attempt needs to repeat work: everything since the last step, and encoding
  // the texts and the image unless only decoding is left.
  absl::Duration computed_again;
  // False for a job that is tied to its caller: the restart cuts off the caller, so such a job ends
  // when it stops.
  bool resumable = true;

  absl::Duration RestartCost() const { return loading + computed_again; }
};

// Returns how long the job may go on before the server stops it: zero to `limit`. A pure function.
//
// With kAuto, a job may go on for the whole `limit` if the job will probably end within the limit
// and within its RestartCost(); otherwise the server stops the job at once. If the remaining time
// is unknown, the job may go on for RestartCost(), so waiting costs at most twice as much as the
// better choice. A job that cannot be resumed always has the whole limit.
absl::Duration TimeToFinish(StopMode mode, const RunningOutlook& job, absl::Duration limit);

}  // namespace wan::server
