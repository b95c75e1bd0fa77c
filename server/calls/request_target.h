// Parses the target of an HTTP request line.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace wan::server {

struct RequestTarget {
  std::string host;   // "localhost:8000" of an absolute URL; else empty
  std::string path;   // "/v1/videos", as sent, not decoded
  std::string query;  // text after '?'
};

// Parses "/PATH?QUERY", or an absolute URL, which every server must accept (RFC 9112,
// absolute-form). Returns nothing for a URL without a host or with a user. Other forms, such as
// "*", are returned as the path.
std::optional<RequestTarget> ParseRequestTarget(std::string_view target);

}  // namespace wan::server
