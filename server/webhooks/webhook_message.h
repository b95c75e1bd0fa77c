// Makes and signs the body of a webhook, in the form of Standard Webhooks (docs/use/webhooks.md).
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
  std::vector<std::pair<std::string, std::string>> fields;  // header fields of the HTTP request
  std::string body;                                         // body of the HTTP request, in JSON
};

// Returns the report of a job that has ended, signed with `secret` for an attempt at `now`. The
// message's ID is the same in every attempt. The body contains no prompt, and of an error only the
// code and the reason.
WebhookMessage MessageOf(const wan::v1::Job& job, std::string_view secret, absl::Time now);

// Reads the secret from a file: "whsec_" and the base64 of 24 to 64 bytes. Returns the bytes that
// the base64 stands for. Error messages name the file, but never its contents.
absl::StatusOr<std::string> ReadWebhookSecret(const std::string& file);

}  // namespace wan::server
