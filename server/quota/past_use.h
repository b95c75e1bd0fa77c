// Reads from the store, when the server starts, the device time that each principal has used.
#pragma once

#include <functional>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "server/store/job_store.h"

namespace wan::server {

// Calls `visit` with the use of every job that ended at `since` or later, in any order. Removed
// jobs are reported as sums for each principal. Returns the store's error if it cannot be read;
// `visit` may have been called before that.
absl::Status VisitUseSince(JobStore& store, absl::Time since,
                           const std::function<void(const PrincipalUse&)>& visit);

}  // namespace wan::server
