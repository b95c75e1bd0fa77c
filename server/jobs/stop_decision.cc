#include "server/jobs/stop_decision.h"

#include <algorithm>

namespace wan::server {

absl::Duration TimeToFinish(StopMode mode, const RunningOutlook& job, absl::Duration limit) {
  switch (mode) {
    case StopMode::kFinish:
      return limit;
    case StopMode::kRequeue:
      return absl::ZeroDuration();
    case StopMode::kAuto:
      break;
  }
  if (!job.resumable) return limit;
  const absl::Duration most = std::min(job.RestartCost(), limit);
  if (!job.left.has_value()) return most;
  return *job.left <= most ? limit : absl::ZeroDuration();
}

}  // namespace wan::server
