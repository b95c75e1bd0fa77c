// Sends one HTTP request to another server. Webhooks and traces are sent with it.
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
  // Whether URLs with http are allowed in addition to https.
  bool allow_http = false;
  // Returns whether the request may connect to an address. It is called when the host's name is
  // resolved; the connection then uses exactly that address. Null: every address is allowed.
  std::function<bool(const sockaddr& address)> may_connect;
  // PEM file of the authorities with which certificates are verified; empty: those of the system.
  // The file is read for each connection; while it cannot be read, every post fails.
  std::string ca_file;
  std::chrono::milliseconds connect_time{10'000};
  // Maximum time for the whole request, from its start to the end of the answer.
  std::chrono::milliseconds whole_time{30'000};
  // Maximum number of bytes of the answer's body that are returned; the rest is dropped.
  size_t most_answer_bytes = 0;
};

using PostFields = std::vector<std::pair<std::string, std::string>>;

struct PostAnswer {
  int status = 0;
  std::string body;
  // The time that the header field Retry-After of the answer names.
  std::optional<absl::Duration> retry_after;
};

// Posts `body` with these header fields, and returns the answer whatever its status is. Blocks
// until the answer has come or `stop` is requested. Follows no redirects and uses no proxy.
//
// Errors: PERMISSION_DENIED if may_connect refuses the address; UNAVAILABLE, with the cause in the
// message, if no answer comes. Any thread may call it.
absl::StatusOr<PostAnswer> Post(const PostOptions& options, const std::string& url,
                                const PostFields& fields, const std::string& body,
                                std::stop_token stop);

}  // namespace wan::server
