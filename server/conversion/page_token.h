// The page tokens of ListJobs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "wan/v1/generation.pb.h"

namespace wan::server {

// Returns a token for the page that begins before `before` in a list of jobs in `states`.
std::string MakePageToken(int64_t before, const std::vector<wan::v1::JobState>& states);

// Returns the `before` of a token. INVALID_ARGUMENT with a violation of `page_token` if
// MakePageToken did not make it, or made it for other states.
absl::StatusOr<int64_t> ParsePageToken(const std::string& token,
                                       const std::vector<wan::v1::JobState>& states);

}  // namespace wan::server
