// Builds and signs the body of a webhook, in the form of Standard Webhooks (docs/use/webhooks.md).
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "wan/v1/generation.pb.h"

namespace wan::server {

struct WebhookMessage {
  std::vector<std::pair<std::string, std::string>> fields;  // HTTP header fields
  std::string body;                                         // JSON
};

// Returns the report of an ended job, signed with `secret` for an attempt at `now`. The message's
// ID is the same in every attempt. The body has no prompt, and only the code and reason of an
// error.
WebhookMessage MessageOf(const wan::v1::Job& job, std::string_view secret, absl::Time now);

// Reads the secret from a file: "whsec_" and the base64 of 24 to 64 bytes. Returns these bytes.
// Error messages name the file and never its contents.
absl::StatusOr<std::string> ReadWebhookSecret(const std::string& file);

}  // namespace wan::server
