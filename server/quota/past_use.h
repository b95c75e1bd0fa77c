// When the server starts, reads from the store how much device time each principal has used.
#pragma once

#include <functional>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "server/store/job_store.h"

namespace wan::server {

// Calls `visit` with the use of every job that ended at `since` or later, in any order. For removed
// jobs, the store has only sums for each principal. Returns the store's error if the store cannot
// be read; `visit` may have been called before that.
absl::Status VisitUseSince(JobStore& store, absl::Time since,
                           const std::function<void(const PrincipalUse&)>& visit);

}  // namespace wan::server
