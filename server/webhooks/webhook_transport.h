// Sends one webhook.
#pragma once

#include <chrono>
#include <stop_token>
#include <string>

#include "absl/status/statusor.h"
#include "server/webhooks/webhook_message.h"
#include "server/webhooks/webhook_rules.h"

namespace wan::server {

// Thread-safe.
class WebhookTransport {
 public:
  virtual ~WebhookTransport() = default;

  // Posts the message and returns the status of the answer. Blocks, for a bounded time. An error
  // says in words why there is no answer.
  virtual absl::StatusOr<int> Post(const std::string& url, const WebhookMessage& message,
                                   std::stop_token stop) = 0;
};

struct TransportLimits {
  std::chrono::milliseconds connect_time{10'000};
  // From the beginning to the whole answer.
  std::chrono::milliseconds whole_time{30'000};
};

// Over libcurl. Looks at the address of each connection after the name was resolved, and connects
// to that very address or not at all; follows no redirects, uses no proxy, and verifies
// certificates with the system's authorities. The body of an answer is not read.
class CurlTransport final : public WebhookTransport {
 public:
  explicit CurlTransport(const WebhookRules& rules, const TransportLimits& limits = {});

  absl::StatusOr<int> Post(const std::string& url, const WebhookMessage& message,
                           std::stop_token stop) override;

 private:
  const WebhookRules rules_;
  const TransportLimits limits_;
};

}  // namespace wan::server
