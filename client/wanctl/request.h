// Makes the request that is sent from the command line's flags.
#pragma once

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/wanctl/options.h"
#include "wan/v1/generation.pb.h"

namespace wan::client {

// Returns the flags' request with the image read from its file and the deadline counted from `now`.
// INVALID_ARGUMENT if the image cannot be read or is greater than 1 GiB.
absl::StatusOr<wan::v1::GenerationRequest> CompleteRequest(const RequestFlags& flags,
                                                           absl::Time now);

}  // namespace wan::client
