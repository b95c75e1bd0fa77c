// Posts one message to another server. The server sends webhooks and traces with Post().
#pragma once

#include <cstddef>
#include <optional>
#include <stop_token>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/outbound/http_client.h"

namespace wan::server {

struct PostOptions : OutboundOptions {
  // Maximum number of bytes of PostAnswer::body; the rest of the answer's body is dropped.
  size_t most_answer_bytes = 0;
};

using PostFields = OutboundFields;

struct PostAnswer {
  int status = 0;
  std::string body;
  // The time that the header field Retry-After of the answer names.
  std::optional<absl::Duration> retry_after;
};

// Posts `body` with the header fields `fields`, and returns the answer whatever the answer's status
// is. Blocks until the answer has come or `stop` is requested. Opens a connection of its own,
// follows no redirects and uses no proxy.
//
// Errors: PERMISSION_DENIED if may_connect refuses the address; UNAVAILABLE, with the cause in the
// message, if no answer comes; CANCELLED after a stop. Any thread may call Post.
absl::StatusOr<PostAnswer> Post(const PostOptions& options, const std::string& url,
                                const PostFields& fields, const std::string& body,
                                std::stop_token stop);

}  // namespace wan::server
