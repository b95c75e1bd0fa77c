// Sends webhooks over HTTP.
#pragma once

#include <chrono>
#include <stop_token>
#include <string>

#include "absl/status/statusor.h"
#include "server/outbound/http_post.h"
#include "server/webhooks/webhook_message.h"
#include "server/webhooks/webhook_rules.h"

namespace wan::server {

// Thread-safe.
class WebhookTransport {
 public:
  virtual ~WebhookTransport() = default;

  // Posts the message, and returns the HTTP status of the answer. Blocks for a limited time. If no
  // answer has come, returns an error with the reason.
  virtual absl::StatusOr<int> Post(const std::string& url, const WebhookMessage& message,
                                   std::stop_token stop) = 0;
};

struct TransportLimits {
  std::chrono::milliseconds connect_time{10'000};
  // Maximum time for the whole attempt, from its start to the end of the answer.
  std::chrono::milliseconds whole_time{30'000};
};

// Sends webhooks with libcurl. For each connection, checks the address after the host's name is
// resolved and connects to exactly that address; follows no redirects, uses no proxy, and verifies
// certificates with the authorities of a file, or with those of the system. Does not read the body
// of an answer.
class CurlTransport final : public WebhookTransport {
 public:
  // `ca_file` is a PEM file of authorities; empty: those of the system. The file is read for each
  // connection; while it cannot be read, every attempt fails.
  explicit CurlTransport(const WebhookRules& rules, const TransportLimits& limits = {},
                         std::string ca_file = {});

  absl::StatusOr<int> Post(const std::string& url, const WebhookMessage& message,
                           std::stop_token stop) override;

 private:
  PostOptions options_;
};

}  // namespace wan::server
