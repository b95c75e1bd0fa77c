// Estimates when a waiting job begins, on a server with one or several device groups.
#pragma once

#include <vector>

#include "absl/time/time.h"

namespace wan::server {

// Returns when a job begins that has `jobs` others with `work` of device time in all before it.
// `free` says when each group takes its next job; it has at least one entry. Exact for one group;
// with several it takes the jobs to be equally long, and every group to be able to run each. Pure.
absl::Duration StartBehind(std::vector<absl::Duration> free, int jobs, absl::Duration work);

}  // namespace wan::server
