// What a start reads of the store, to know what principals used before.
#pragma once

#include <functional>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "server/store/job_store.h"

namespace wan::server {

// Calls `visit` for what every job has used that ended at `since` or later, in no promised order;
// jobs that were removed since are among them, summed up. Returns the store's error if it cannot be
// read; some have been visited then.
absl::Status VisitUseSince(JobStore& store, absl::Time since,
                           const std::function<void(const PrincipalUse&)>& visit);

}  // namespace wan::server
