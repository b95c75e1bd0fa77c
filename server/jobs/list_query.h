// A ListJobs request as a query of the store.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "server/store/job_store.h"
#include "wan/v1/video_generation.pb.h"

namespace wan::server {

// The jobs of `owner`, or everybody's. INVALID_ARGUMENT with all violations of page_size, states,
// filter and order_by, or of page_token. `key` is the store's SecretKey.
absl::StatusOr<JobQuery> QueryOf(const wan::v1::ListJobsRequest& request,
                                 const std::optional<std::string>& owner, std::string_view key);

// The token of the page that begins after `place`, for requests that otherwise equal `request`. The
// place is sealed, because its number reveals how many jobs all callers have made.
std::string PageTokenOf(const wan::v1::ListJobsRequest& request, const JobPlace& place,
                        std::string_view key);

}  // namespace wan::server
