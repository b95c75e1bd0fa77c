// Makes requests from flags.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/wanctl/options.h"
#include "wan/v1/generation.pb.h"

namespace wan::client {

// Returns the bytes of an image file. Fails with INVALID_ARGUMENT, and a message that begins with
// the path, if the file cannot be read, is empty, is larger than 1 GiB or is not a regular file.
absl::StatusOr<std::string> ReadImage(const std::string& path);

// Returns the request that the flags describe, with the content of the files that they name, and
// the deadline counted from `now`. Fails as ReadImage does; the message then begins with the flag,
// for example "--image".
absl::StatusOr<wan::v1::GenerationRequest> CompleteRequest(const RequestFlags& flags,
                                                           absl::Time now);

// Returns a request_id that no other call has, "PREFIX-" and 32 hex digits.
std::string NewRequestId(std::string_view prefix);

// Returns the request that reproduces a receipt's video, with a new request_id and without
// deadline, previews and webhook, and with the files that `command` names. Fails with
// INVALID_ARGUMENT if a file is missing, superfluous or unreadable, or if the image is not the
// receipt's. The server compares the latents with the receipt's.
absl::StatusOr<wan::v1::GenerationRequest> ReplayRequest(const wan::v1::Receipt& receipt,
                                                         const ReplayCommand& command);

}  // namespace wan::client
