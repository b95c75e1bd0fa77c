// One GET over plain HTTP, for tests of the metrics endpoint.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace wan::support {

struct HttpResponse {
  int status = 0;
  std::string content_type;
  std::string body;
};

// `host` is an IPv4 or IPv6 address. UNAVAILABLE if there is no answer.
absl::StatusOr<HttpResponse> HttpGet(const std::string& host, int port, std::string_view path);

}  // namespace wan::support
