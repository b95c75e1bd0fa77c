// Sends requests to the collector of traces that the operator has named.
#pragma once

#include <stop_token>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "server/outbound/http_post.h"

namespace wan::server {

// Returns the URL to which spans are posted. `endpoint` is the setting otlp_endpoint: a collector's
// base URL, to which v1/traces is added, or one that ends with it. INVALID_ARGUMENT, whose message
// begins with the setting, if it is no URL of http or https, or has more than a host, a port and a
// path.
absl::StatusOr<std::string> TracesUrl(const std::string& endpoint);

// Reads fields of a header from the file of the setting otlp_headers: "NAME: VALUE" in each line;
// empty lines and those that begin with '#' say nothing. Error messages begin with the setting and
// never contain the values, which may be secret.
absl::StatusOr<PostFields> ReadCollectorHeaders(const std::string& file);

// Thread-safe.
class Collector {
 public:
  // `ca_file` as in PostOptions.
  Collector(std::string url, PostFields headers, std::string ca_file);

  // Posts an ExportTraceServiceRequest in JSON. Blocks for 10 s at most.
  absl::StatusOr<PostAnswer> Post(const std::string& request, std::stop_token stop) const;

 private:
  const std::string url_;
  PostFields fields_;
  PostOptions options_;
};

}  // namespace wan::server
