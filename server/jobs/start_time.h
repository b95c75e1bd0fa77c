// Estimates when a waiting job begins, on a server with one or several device groups.
#pragma once

#include <vector>

#include "absl/time/time.h"

namespace wan::server {

// Returns the time until a job begins that waits for `jobs` jobs with a total device time of
// `work`. `free` has the time until each group takes its next job, at least one entry. Exact for
// one group; for several it assumes that the jobs are equally long and that every group can run
// each of them. Pure.
absl::Duration StartBehind(std::vector<absl::Duration> free, int jobs, absl::Duration work);

}  // namespace wan::server
