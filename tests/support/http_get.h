// One request over plain HTTP, for tests of the addresses that speak it.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace wan::support {

struct HttpResponse {
  int status = 0;
  std::string content_type;
  std::string body;
  std::map<std::string, std::string> fields;  // of the header, with names in lower case
};

// `host` is an IPv4 or IPv6 address. UNAVAILABLE if there is no answer.
absl::StatusOr<HttpResponse> HttpGet(const std::string& host, int port, std::string_view path);

struct HttpRequest {
  std::string method = "GET";
  std::string path;
  std::map<std::string, std::string> fields;
  std::string body;
};

// The answer of a server at this port of 127.0.0.1.
absl::StatusOr<HttpResponse> AskHttp(int port, const HttpRequest& request);

}  // namespace wan::support
