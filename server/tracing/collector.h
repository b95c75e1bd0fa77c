// Sends requests to the collector of traces that the operator has configured.
#pragma once

#include <stop_token>
#include <string>

#include "absl/status/statusor.h"
#include "server/outbound/http_post.h"

namespace wan::server {

// Returns the URL to which spans are posted. `endpoint` is the value of the setting otlp_endpoint;
// if the value does not end with "/v1/traces", adds "/v1/traces". Fails with INVALID_ARGUMENT, and
// a message that begins with the setting, if the value is not an http or https URL or has more than
// host, port and path.
absl::StatusOr<std::string> TracesUrl(const std::string& endpoint);

// Reads HTTP header fields from the file that the setting otlp_headers names: each line has one,
// "NAME: VALUE", except empty lines and comments (#). Error messages begin with the setting and
// never contain values, which may be secret.
absl::StatusOr<PostFields> ReadCollectorHeaders(const std::string& file);

// Thread-safe.
class Collector {
 public:
  // `ca_file` is the value for PostOptions::ca_file.
  Collector(std::string url, PostFields headers, std::string ca_file);

  // Posts an ExportTraceServiceRequest in JSON. Blocks for at most 10 s.
  absl::StatusOr<PostAnswer> Post(const std::string& request, std::stop_token stop) const;

 private:
  const std::string url_;
  PostFields fields_;
  PostOptions options_;
};

}  // namespace wan::server
