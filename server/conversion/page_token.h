// What ListJobs gives its caller to come back with.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "wan/v1/generation.pb.h"

namespace wan::server {

// Opaque text that holds the place and the states that the list was asked for with.
std::string MakePageToken(int64_t before, const std::vector<wan::v1::JobState>& states);

// The place. INVALID_ARGUMENT, a violation of `page_token`, for what MakePageToken did not make, or
// made for other states.
absl::StatusOr<int64_t> ParsePageToken(const std::string& token,
                                       const std::vector<wan::v1::JobState>& states);

}  // namespace wan::server
