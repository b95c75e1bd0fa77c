// Sends one HTTP request to another server. Webhooks and traces leave the process through here.
#pragma once

#include <sys/socket.h>

#include <chrono>
#include <cstddef>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace wan::server {

struct PostOptions {
  // Whether http is allowed as well as https.
  bool allow_http = false;
  // Returns whether an address may be connected to, and is asked after the name was resolved; the
  // connection then goes to that very address. Null: every address.
  std::function<bool(const sockaddr& address)> may_connect;
  // PEM file of the authorities that certificates are verified with; empty: the system's. It is
  // read for each connection; while it cannot be read, every post fails.
  std::string ca_file;
  std::chrono::milliseconds connect_time{10'000};
  // Limit from the begin to the end of the answer.
  std::chrono::milliseconds whole_time{30'000};
  // Most bytes of the answer's body that are read; the rest is dropped.
  size_t most_answer_bytes = 0;
};

using PostFields = std::vector<std::pair<std::string, std::string>>;

struct PostAnswer {
  int status = 0;
  std::string body;
  // The time that the server asks to wait (Retry-After).
  std::optional<absl::Duration> retry_after;
};

// Posts `body` with these fields of the header and returns the answer, whatever its status. Blocks
// until then, or until `stop`. Follows no redirects and uses no proxy.
//
// Errors: PERMISSION_DENIED if the address may not be connected to; UNAVAILABLE, whose message says
// why, if there is no answer. Any thread.
absl::StatusOr<PostAnswer> Post(const PostOptions& options, const std::string& url,
                                const PostFields& fields, const std::string& body,
                                std::stop_token stop);

}  // namespace wan::server
