// Reads from the store, at the start, what each principal used before.
#pragma once

#include <functional>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "server/store/job_store.h"

namespace wan::server {

// Calls `visit` with the use of every job that ended at `since` or later, in any order. Jobs that
// were removed since come as sums. Returns the store's error if it cannot be read; `visit` may have
// been called before.
absl::Status VisitUseSince(JobStore& store, absl::Time since,
                           const std::function<void(const PrincipalUse&)>& visit);

}  // namespace wan::server
