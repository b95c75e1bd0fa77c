// From the command line's flags to the request that is sent.
#pragma once

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/wanctl/options.h"
#include "wan/v1/generation.pb.h"

namespace wan::client {

// Reads the image and counts the deadline from `now`. An error says why the image cannot be read,
// or that it is greater than any message may be.
absl::StatusOr<wan::v1::GenerationRequest> CompleteRequest(const RequestFlags& flags,
                                                           absl::Time now);

}  // namespace wan::client
