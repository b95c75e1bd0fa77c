// Converts a ListJobs request to a query of the store.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "server/store/job_store.h"
#include "wan/v1/video_generation.pb.h"

namespace wan::server {

// Returns the query for the jobs of `owner`, or of all owners. Fails with INVALID_ARGUMENT and all
// violations of page_size, states, filter and order_by; if there are none, with the violation of
// page_token. `key` is the store's SecretKey.
absl::StatusOr<JobQuery> QueryOf(const wan::v1::ListJobsRequest& request,
                                 const std::optional<std::string>& owner, std::string_view key);

// Returns the token of the page that begins after `place`. The token is valid for requests with the
// states, filter and order of `request`. The token is encrypted, because the place reveals how many
// jobs all callers have made.
std::string PageTokenOf(const wan::v1::ListJobsRequest& request, const JobPlace& place,
                        std::string_view key);

}  // namespace wan::server
