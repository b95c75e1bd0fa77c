#include "server/jobs/preemption.h"

namespace wan::server {

bool PreemptionPays(const PreemptionCase& jobs, int gap) {
  if (gap <= 0 || jobs.waiting_priority - jobs.running_priority < gap) return false;
  return jobs.left.has_value() && jobs.cost.has_value() && *jobs.cost < *jobs.left;
}

}  // namespace wan::server
