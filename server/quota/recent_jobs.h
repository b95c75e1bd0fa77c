// What a start reads of the store, to know what principals used before.
#pragma once

#include <functional>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "server/store/job_store.h"
#include "wan/v1/generation.pb.h"

namespace wan::server {

// Calls `visit` for every stored job that ended at `since` or later, in no promised order. Returns
// the store's error if it cannot be read; some jobs have been visited then.
absl::Status VisitJobsEndedSince(JobStore& store, absl::Time since,
                                 const std::function<void(const wan::v1::Job&)>& visit);

}  // namespace wan::server
