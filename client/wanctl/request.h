// Makes requests from the command line's flags.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/wanctl/options.h"
#include "wan/v1/generation.pb.h"

namespace wan::client {

// Returns the bytes of an image's file. INVALID_ARGUMENT, whose message begins with the path, if it
// cannot be read, is empty, is greater than 1 GiB or is not a regular file.
absl::StatusOr<std::string> ReadImage(const std::string& path);

// Returns the flags' request with the image read from its file and the deadline counted from `now`.
// INVALID_ARGUMENT if ReadImage cannot read the image; the message begins with "--image".
absl::StatusOr<wan::v1::GenerationRequest> CompleteRequest(const RequestFlags& flags,
                                                           absl::Time now);

// Returns the request that makes a receipt's video again, with a request_id of its own and without
// deadline, previews and webhook. `image_path` is the image's file; empty: none. INVALID_ARGUMENT
// if the receipt needs an image and there is none, or the other way around, if it cannot be read,
// or if it is another one than the receipt's.
absl::StatusOr<wan::v1::GenerationRequest> ReplayRequest(const wan::v1::Receipt& receipt,
                                                         const std::string& image_path);

}  // namespace wan::client
