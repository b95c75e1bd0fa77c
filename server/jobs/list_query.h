// A ListJobs request as a query of the store.
#pragma once

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "server/store/job_store.h"
#include "wan/v1/video_generation.pb.h"

namespace wan::server {

// The jobs of `owner`, or everybody's. INVALID_ARGUMENT with all violations of page_size, states,
// filter and order_by, or of page_token.
absl::StatusOr<JobQuery> QueryOf(const wan::v1::ListJobsRequest& request,
                                 const std::optional<std::string>& owner);

// The token of the page that begins behind `place`, for requests that otherwise equal `request`.
std::string PageTokenOf(const wan::v1::ListJobsRequest& request, const JobPlace& place);

}  // namespace wan::server
