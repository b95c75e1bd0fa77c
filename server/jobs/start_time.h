// Estimates when a waiting job begins, on a server with one or several device groups.
#pragma once

#include <vector>

#include "absl/time/time.h"

namespace wan::server {

// Returns the time until the start of a job that waits for `jobs` other jobs with a total device
// time of `work`. `free` has for each group (at least one) the time until the group takes its next
// job. The result is exact for one group; for several it assumes that the jobs are equally long and
// that every group can run each of them. A pure function.
absl::Duration StartBehind(std::vector<absl::Duration> free, int jobs, absl::Duration work);

}  // namespace wan::server
