#include "server/webhooks/webhook_transport.h"

#include <utility>

namespace wan::server {

CurlTransport::CurlTransport(const WebhookRules& rules, const TransportLimits& limits,
                             std::string ca_file) {
  options_.allow_http = rules.allow_http;
  if (!rules.allow_private) options_.may_connect = &IsPublicAddress;
  options_.ca_file = std::move(ca_file);
  options_.connect_time = limits.connect_time;
  options_.whole_time = limits.whole_time;
}

absl::StatusOr<int> CurlTransport::Post(const std::string& url, const WebhookMessage& message,
                                        std::stop_token stop) {
  const absl::StatusOr<PostAnswer> answer =
      server::Post(options_, url, message.fields, message.body, std::move(stop));
  if (answer.ok()) return answer->status;
  if (!absl::IsPermissionDenied(answer.status())) return answer.status();
  return absl::PermissionDeniedError(
      "the host's address belongs to a private network or to this machine, which "
      "webhook_private does not allow");
}

}  // namespace wan::server
