// Sends one HTTP request to another server. Used for webhooks and traces.
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
  // Returns whether to connect to an address. Called after name resolution; the connection then
  // uses exactly that address. Null: every address is allowed.
  std::function<bool(const sockaddr& address)> may_connect;
  // PEM file of the authorities with which certificates are verified; empty: the system's. Read for
  // each connection; while it is unreadable, every post fails.
  std::string ca_file;
  std::chrono::milliseconds connect_time{10'000};
  // Most time for the whole request, until the end of the answer.
  std::chrono::milliseconds whole_time{30'000};
  // Most bytes of the answer's body to return; the rest is dropped.
  size_t most_answer_bytes = 0;
};

using PostFields = std::vector<std::pair<std::string, std::string>>;

struct PostAnswer {
  int status = 0;
  std::string body;
  // The value of Retry-After.
  std::optional<absl::Duration> retry_after;
};

// Posts `body` with these header fields and returns the answer, whatever its status. Blocks until
// the answer or until `stop`. Follows no redirects and uses no proxy.
//
// Errors: PERMISSION_DENIED if may_connect refuses the address; UNAVAILABLE, with the cause in the
// message, if there is no answer. Any thread may call it.
absl::StatusOr<PostAnswer> Post(const PostOptions& options, const std::string& url,
                                const PostFields& fields, const std::string& body,
                                std::stop_token stop);

}  // namespace wan::server
